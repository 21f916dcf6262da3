"""Understands markers: the positions in a program that an STM log holds as text."""

import re
from collections.abc import Sequence

from gilscope.values import dataclass

__all__ = ["Position", "describe", "position_of", "without_offset"]

_POSITION = re.compile(r'File "(.*)", line (\d+), in (.*?)(?: \(#(\d+)\))?', re.DOTALL)
_RAW_BYTES = 8
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
_TRUNCATED = "<"
_NOWHERE = "(no position: not in a Python function)"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a program, as the program itself knows it."""

    file: str
    """As it was started: often relative. One that begins with ``<`` has lost its beginning, or is
    none, such as ``<string>``."""
    line: int
    """0: unknown."""
    function: str
    """One that ends with ``>`` may have lost its end."""
    offset: int | None
    """Of the next bytecode instruction; logs have it since 2015-06-20."""


def position_of(marker: str) -> Position | None:
    """Return the position that *marker* names, or None where it has another form."""
    found = _POSITION.fullmatch(marker)
    if found is None:
        return None
    offset = found[4]
    return Position(found[1], int(found[2]), found[3], None if offset is None else int(offset))


def without_offset(markers: Sequence[str]) -> tuple[str, ...]:
    """Return *markers* without the bytecode offsets, in which the same lines can differ."""
    return tuple(_without_offset(marker) for marker in markers)


def _without_offset(marker: str) -> str:
    found = _POSITION.fullmatch(marker)
    return marker if found is None or found[4] is None else marker[: found.end(3)]


def describe(marker: str) -> str:
    """Return *marker* as it is shown: itself, or in words what stands in its place."""
    if not marker:
        return _NOWHERE
    if position_of(marker) is None and (number := _raw_number(marker)) is not None:
        return f"(position number {number}: the program does not say what it stands for)"
    return marker


def _raw_number(marker: str) -> int | None:
    # What is not UTF-8 came here as escapes.
    raw = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), marker)
    if len(raw) != _RAW_BYTES or raw.isprintable() or max(raw) > "\xff":
        return None
    return int.from_bytes(raw.encode("latin-1"), "little")
