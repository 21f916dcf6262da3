"""Finds the code that refers to the error messages of the GIL's functions."""

import re
import struct
from collections.abc import Iterator
from typing import Final

from gilscope.elf.budget import MATCHES_AT_ONCE, ElfBudget
from gilscope.elf.image import ElfError, ElfImage

__all__ = ["GIL_MESSAGES", "YIELD_MESSAGES", "message_addresses", "references"]

GIL_MESSAGES: Final = re.compile(
    rb"Py(?:MUTEX|COND)_[A-Z_]+\((?:&|_PyRuntime\.ceval\.)?gil(?:->|\.|_)[a-z_]+\) failed\0"
    rb"|drop_gil: GIL is not locked\0"
    rb"|take_gil: NULL tstate\0"
    rb"|(?<=\0)(?:take_gil|drop_gil|drop_gil_impl)\0"
)
"""What take_gil and drop_gil say before they abort, and their names as they appear in it."""

YIELD_MESSAGES: Final = re.compile(rb"(?:ceval: )?tstate mix-up\0")
"""Said by the evaluation loop's yield up to CPython 3.12, and by nothing else."""

# lea reg, [rip + distance]: position-independent code.
_LOAD_ADDRESS: Final = re.compile(
    rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](?=....)", re.DOTALL
)
_LOAD_ADDRESS_LENGTH: Final = 7
# mov r32, imm32: code linked to a fixed address in the lowest 4 GB.
_MOVE_ADDRESS: Final = rb"[\xb8-\xbf]"
_LARGEST_IMMEDIATE: Final = 0xFFFFFFFF

_MOST_MESSAGES: Final = 256
"""A build has some thirty."""


def message_addresses(image: ElfImage, messages: re.Pattern[bytes]) -> frozenset[int]:
    """Return the addresses of the matching strings among the image's constants."""
    found: set[int] = set()
    for section in image.sections:
        if section.name.startswith((".rodata", ".lrodata")):
            image.budget.search(section.size)
            for match in messages.finditer(image.section_bytes(section)):
                image.budget.spend(1)
                found.add(section.vaddr + match.start())
    if len(found) > _MOST_MESSAGES:
        raise ElfError(f"{len(found)} places hold messages of the GIL; no build has as many")
    return frozenset(found)


def references(image: ElfImage, addresses: frozenset[int]) -> dict[int, int]:
    """Return the instructions that load one of *addresses*: their address -> what they load."""
    found: dict[int, int] = {}
    if not addresses:
        return found
    for section in image.sections:
        if section.is_code:
            image.budget.search(section.size)
            code = image.section_bytes(section)
            loads = _relative_references(code, section.vaddr, image.budget)
            found.update(load for load in loads if load[1] in addresses)
            if not image.is_pie:
                loads = _absolute_references(code, section.vaddr, addresses, image.budget)
                found.update(load for load in loads if load[1] in addresses)
    return found


def _relative_references(
    code: memoryview, vaddr: int, budget: ElfBudget
) -> Iterator[tuple[int, int]]:
    """Yield every instruction that loads an address, and the address."""
    distance = struct.Struct("<i").unpack_from
    behind = vaddr + _LOAD_ADDRESS_LENGTH
    for number, match in enumerate(_LOAD_ADDRESS.finditer(code)):
        if not number % MATCHES_AT_ONCE:
            budget.spend(MATCHES_AT_ONCE)
        position = match.start()
        yield vaddr + position, behind + position + distance(code, position + 3)[0]


def _absolute_references(
    code: memoryview, vaddr: int, addresses: frozenset[int], budget: ElfBudget
) -> Iterator[tuple[int, int]]:
    """Yield the instructions that load something near one of *addresses*, and what they load."""
    immediates = [
        struct.pack("<I", address) for address in addresses if address <= _LARGEST_IMMEDIATE
    ]
    # The upper half of an address tells most of them, in the same time for any number of them.
    upper = (re.escape(bytes({immediate[place] for immediate in immediates})) for place in (2, 3))
    pattern = re.compile(_MOVE_ADDRESS + rb"(?=(..[%s][%s]))" % tuple(upper), re.DOTALL)
    for number, match in enumerate(pattern.finditer(code) if immediates else ()):
        if not number % MATCHES_AT_ONCE:
            budget.spend(MATCHES_AT_ONCE)
        yield vaddr + match.start(), int.from_bytes(match[1], "little")
