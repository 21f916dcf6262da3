"""Where a file keeps a variable of which each thread has its own, as far as the file tells.

The distance from a thread's descriptor to its copy is known when the file has been loaded. Code
finds it through slots that the dynamic loader fills, and the file says where these are and of what
kind ("ELF Handling For Thread-Local Storage", and the descriptors of RFC-TLSDESC-x86).
"""

from typing import Final

from gilscope.elf.image import ElfImage
from gilscope.elf.relocations import relocations
from gilscope.values import dataclass

__all__ = ["ThreadVariable", "find_thread_variable"]

_MACHINE: Final = "x86-64"
_STT_TLS: Final = 6
_DTPMOD64, _TPOFF64, _TLSDESC = 16, 18, 36


@dataclass(frozen=True, slots=True)
class ThreadVariable:
    """A variable that a file exports. Addresses are the file's own."""

    offset: int
    """In the block of the file's variables that each thread has."""
    descriptors: tuple[int, ...]
    """Of two words that the loader fills: a function, and what it is called with."""
    distances: tuple[int, ...]
    """Of words with the distance from a thread's descriptor, which is negative."""
    modules: tuple[int, ...]
    """Of words with the number of the file among those with such variables."""
    distance: int
    """The same if it is the program itself, and not loaded beside one."""


def find_thread_variable(image: ElfImage, name: str) -> ThreadVariable | None:
    """Return the variable *name* that an image exports, None if it exports none; raises ElfError.

    None as well for a processor whose slots are of other kinds.
    """
    symbols = image.dynamic_symbol_table
    image.budget.search(symbols.string_bytes)
    if image.machine != _MACHINE or not symbols.may_name(name):
        return None
    image.budget.spend(len(symbols))
    found = next(
        (
            (index, entry.vaddr)
            for index, entry in enumerate(symbols)
            if entry.kind == _STT_TLS and entry.section_index and entry.name == name
        ),
        None,
    )
    if found is None:
        return None
    index, offset = found
    slots: dict[int, list[int]] = {_TLSDESC: [], _TPOFF64: [], _DTPMOD64: []}
    for slot, kind, symbol, addend in relocations(image):
        # A file that binds its own names refers to the variable by its offset alone.
        is_it = symbol == index or (not symbol and addend == offset)
        if kind in slots and (is_it or (kind == _DTPMOD64 and not symbol)):
            slots[kind].append(slot)
    return ThreadVariable(
        offset,
        tuple(slots[_TLSDESC]),
        tuple(slots[_TPOFF64]),
        tuple(slots[_DTPMOD64]),
        offset - image.thread_block_size,
    )
