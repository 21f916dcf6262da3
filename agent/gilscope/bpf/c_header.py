"""What user space and the probes agree on, written once in Python and rendered as a C header."""

import struct
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple, Self

from gilscope.bpf.map import RecordLayout
from gilscope.model.histogram import OCTAVE_BITS, SLOTS, STEP_BITS, STEPS
from gilscope.values import dataclass

__all__ = [
    "CEnum",
    "CStruct",
    "Member",
    "Row",
    "SharedEnum",
    "constants",
    "header",
    "histogram_constants",
]

_CODES: Final = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "s32": "i", "s64": "q"}
"""struct's code for each type of C that is used."""
_INDENT: Final = "    "


class SharedEnum(IntEnum):
    """Numbers with a name on both sides, and a comment for the reader of the C."""

    comment: str

    def __new__(cls, number: int, comment: str = "") -> Self:
        """Make a member of its number, which stays what it is wherever the member stands."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.comment = comment
        return member


class Row(NamedTuple):
    """One enumerator or constant of C."""

    name: str
    number: int
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CEnum:
    """``enum NAME`` of C, with every number written out."""

    name: str
    about: str
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, kind: type[SharedEnum], name: str, prefix: str = "") -> Self:
        """Return the enum that says of *kind*'s members what Python says of them."""
        rows = tuple(Row(prefix + each.name, each.value, each.comment) for each in kind)
        about, _, _ = (kind.__doc__ or "").partition("\n")
        return cls(name, about, rows)

    def declaration(self) -> str:
        """Return the C."""
        lines = _aligned((f"{_INDENT}{row.name} = {row.number},", row.comment) for row in self.rows)
        return "\n".join([f"// {self.about}", f"enum {self.name} {{", *lines, "};"])


class Member(NamedTuple):
    """One member of a struct."""

    type: str
    """Of C, such as ``u32``."""
    name: str
    elements: int = 0
    """0: it is no array."""
    comment: str = ""

    @property
    def declaration(self) -> str:
        """Without the comment."""
        return f"{_INDENT}{self.type} {self.name}{f'[{self.elements}]' if self.elements else ''};"


@dataclass(frozen=True, slots=True)
class CStruct:
    """``struct NAME`` of C without any padding but what is written out."""

    name: str
    about: str
    members: tuple[Member, ...]

    def layout(self) -> RecordLayout:
        """Return how Python reads it; raises ValueError where a compiler would add padding."""
        fields, offset, widest = [], 0, 1
        for member in self.members:
            size = struct.calcsize(f"={_CODES[member.type]}")
            if offset % size:
                raise ValueError(f"struct {self.name}: {member.name} needs padding before it")
            fields.append((member.name, offset, _CODES[member.type], member.elements))
            offset += size * max(1, member.elements)
            widest = max(widest, size)
        if offset % widest:
            raise ValueError(f"struct {self.name} needs padding at its end")
        return RecordLayout(offset, fields)

    def declaration(self) -> str:
        """Return the C."""
        lines = _aligned((member.declaration, member.comment) for member in self.members)
        return "\n".join([f"// {self.about}", f"struct {self.name} {{", *lines, "};"])


def constants(numbers: Mapping[str, tuple[int, str]]) -> str:
    """Return a macro for each name, with its comment."""
    lines = ((f"#define {name} {number}", words) for name, (number, words) in numbers.items())
    return "\n".join(_aligned(lines))


def histogram_constants() -> dict[str, tuple[int, str]]:
    """Return those of `gilscope.model.histogram`."""
    return {
        "HISTOGRAM_OCTAVE_BITS": (OCTAVE_BITS, "2 to this: slots from 2^k to 2^(k+1)"),
        "HISTOGRAM_SLOTS": (SLOTS, "the last takes the rest"),
        "HISTOGRAM_STEP_BITS": (
            STEP_BITS,
            "an octave begins at 2 to this, its slots",
        ),
        **{f"HISTOGRAM_STEP_{number}": (step, "") for number, step in enumerate(STEPS, 1)},
    }


def header(source: str, *parts: str) -> str:
    """Return the whole header, made from the module *source* of the package."""
    begin = (
        "// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only\n//\n"
        f"// Made by `make abi` from agent/gilscope/{source}, which says the same to Python."
    )
    return "\n\n".join([begin, *parts]) + "\n"


def _aligned(lines: Iterable[tuple[str, str]]) -> list[str]:
    """Return *lines* with their comments below one another, as clang-format has them."""
    aligned: list[str] = []
    block: list[tuple[str, str]] = []
    for code, comment in [*lines, ("", "")]:
        if comment:
            block.append((code, comment))
            continue
        width = max((len(each) for each, _ in block), default=0)
        aligned += [f"{each:{width}} // {words}" for each, words in block]
        block = []
        if code:
            aligned.append(code)
    return aligned
