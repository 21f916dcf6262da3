"""Finds the code that refers to the error messages of the GIL's functions."""

import re
import struct
from collections.abc import Iterator
from typing import Final

from gilscope.elf import ElfImage

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
_LOAD_ADDRESS: Final = re.compile(rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d]", re.DOTALL)
_LOAD_ADDRESS_LENGTH: Final = 7
# mov r32, imm32: code linked to a fixed address in the lowest 4 GB.
_MOVE_ADDRESS: Final = rb"[\xb8-\xbf]"
_LARGEST_IMMEDIATE: Final = 0xFFFFFFFF


def message_addresses(image: ElfImage, messages: re.Pattern[bytes]) -> frozenset[int]:
    """Return the addresses of the matching strings among the image's constants."""
    return frozenset(
        section.vaddr + match.start()
        for section in image.sections
        if section.name.startswith((".rodata", ".lrodata"))
        for match in messages.finditer(image.section_bytes(section))
    )


def references(image: ElfImage, addresses: frozenset[int]) -> dict[int, int]:
    """Return the instructions that load one of *addresses*: their address -> what they load."""
    found: dict[int, int] = {}
    if not addresses:
        return found
    for section in image.sections:
        if section.is_code:
            code = image.section_bytes(section)
            found |= _relative_references(code, section.vaddr, addresses)
            if not image.is_pie:
                found |= _absolute_references(code, section.vaddr, addresses)
    return found


def _relative_references(
    code: bytes, vaddr: int, addresses: frozenset[int]
) -> Iterator[tuple[int, int]]:
    distance = struct.Struct("<i").unpack_from
    last = len(code) - _LOAD_ADDRESS_LENGTH
    for match in _LOAD_ADDRESS.finditer(code):
        position = match.start()
        if position > last:
            return
        target = vaddr + position + _LOAD_ADDRESS_LENGTH + distance(code, position + 3)[0]
        if target in addresses:
            yield vaddr + position, target


def _absolute_references(
    code: bytes, vaddr: int, addresses: frozenset[int]
) -> Iterator[tuple[int, int]]:
    immediates = [
        re.escape(struct.pack("<I", address))
        for address in addresses
        if address <= _LARGEST_IMMEDIATE
    ]
    if not immediates:
        return
    pattern = re.compile(_MOVE_ADDRESS + rb"(?=(" + rb"|".join(immediates) + rb"))", re.DOTALL)
    for match in pattern.finditer(code):
        yield vaddr + match.start(), int.from_bytes(match[1], "little")
