"""Where a file's calls of other libraries' functions go: its GOT slots and PLT stubs."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gilscope.elf.image import ElfError, ElfImage

__all__ = ["Linkage", "read_linkage"]

_SHT_RELA: Final = 4
_RELA_BYTES: Final = 24
_ENTRY_BYTES: Final = 250
_R_X86_64_GLOB_DAT: Final = 6
_R_X86_64_JUMP_SLOT: Final = 7

_JUMP_THROUGH_SLOT: Final = re.compile(rb"\xff\x25(?=....)", re.DOTALL)
_BND: Final = b"\xf2"
_ENDBR64: Final = b"\xf3\x0f\x1e\xfa"


@dataclass(frozen=True, slots=True)
class Linkage:
    """The two ways in which x86-64 code names a function that the dynamic loader finds."""

    slots: dict[int, str]
    """Address of a GOT slot -> symbol name."""
    stubs: dict[int, str]
    """Address that a call of a PLT stub may have as its target -> symbol name."""


def read_linkage(image: ElfImage) -> Linkage:
    """Return the GOT slots and PLT stubs of an x86-64 image; raises ElfError."""
    slots = _got_slots(image)
    stubs: dict[int, str] = {}
    for section in image.sections:
        if section.name.startswith(".plt") and section.is_code:
            image.budget.search(section.size)
            for stub, name in _plt_stubs(image.section_bytes(section), section.vaddr, slots):
                image.budget.spend(1, _ENTRY_BYTES)
                stubs[stub] = name
    return Linkage(slots, stubs)


def _got_slots(image: ElfImage) -> dict[int, str]:
    slots: dict[int, str] = {}
    symbols = image.dynamic_symbol_table
    kinds = (_R_X86_64_GLOB_DAT, _R_X86_64_JUMP_SLOT)
    for section in image.sections:
        if section.kind != _SHT_RELA or not section.size:
            continue
        relocations = image.section_bytes(section)
        if len(relocations) % _RELA_BYTES:
            raise ElfError(f"{section.name} of {len(relocations)} bytes")
        image.budget.spend(len(relocations) // _RELA_BYTES)
        for slot, kind, symbol in struct.iter_unpack("<QII8x", relocations):
            if kind not in kinds or not symbol:
                continue
            if symbol >= len(symbols):
                raise ElfError(f"{section.name} refers to symbol {symbol} of {len(symbols)}")
            name = symbols.name(symbol)
            image.budget.spend(1, _ENTRY_BYTES + len(name))
            slots[slot] = name
    return slots


def _plt_stubs(code: memoryview, vaddr: int, slots: dict[int, str]) -> Iterator[tuple[int, str]]:
    for match in _JUMP_THROUGH_SLOT.finditer(code):
        start = match.start()
        (distance,) = struct.unpack_from("<i", code, start + 2)
        name = slots.get(vaddr + start + 6 + distance)
        if name is None:
            continue
        for before in (_BND, _ENDBR64):
            if bytes(code[max(start - len(before), 0) : start]) == before:
                start -= len(before)
        yield vaddr + start, name
