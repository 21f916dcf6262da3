"""Where a file's calls of other libraries' functions go: its GOT slots and PLT stubs."""

from typing import Final

from gilscope.elf.image import ElfError, ElfImage
from gilscope.elf.relocations import relocations
from gilscope.values import dataclass

__all__ = ["Linkage", "read_linkage"]

_ENTRY_BYTES: Final = 250


@dataclass(frozen=True, slots=True)
class Linkage:
    """The two ways in which code names a function that the dynamic loader finds."""

    slots: dict[int, str]
    """Address of a GOT slot -> symbol name."""
    stubs: dict[int, str]
    """Address that a call of a PLT stub may have as its target -> symbol name."""


def read_linkage(image: ElfImage) -> Linkage:
    """Return the GOT slots and PLT stubs of an image; raises ElfError."""
    slots = _got_slots(image)
    slot_stubs = image.architecture.slot_stubs
    stubs: dict[int, str] = {}
    for section in image.sections:
        if section.name.startswith(".plt") and section.is_code:
            image.budget.search(section.size)
            for stub, slot in slot_stubs(image.section_bytes(section), section.vaddr):
                name = slots.get(slot)
                if name is not None:
                    image.budget.spend(1, _ENTRY_BYTES)
                    stubs[stub] = name
    return Linkage(slots, stubs)


def _got_slots(image: ElfImage) -> dict[int, str]:
    slots: dict[int, str] = {}
    symbols = image.dynamic_symbol_table
    kinds = image.architecture.slot_relocations
    for slot, kind, symbol, _ in relocations(image):
        if kind not in kinds or not symbol:
            continue
        if symbol >= len(symbols):
            raise ElfError(f"a relocation refers to symbol {symbol} of {len(symbols)}")
        name = symbols.name(symbol)
        image.budget.spend(1, _ENTRY_BYTES + len(name))
        slots[slot] = name
    return slots
