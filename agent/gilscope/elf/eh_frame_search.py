"""Finds single entries of .eh_frame by .eh_frame_hdr, the sorted table that linkers add to it.

To step through some calls takes a few entries of each file; to read the whole section first takes
a tenth of a second for each 20,000 functions.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, Protocol

from gilscope.elf.cfi import UnwindRule
from gilscope.elf.dwarf import DwarfReader
from gilscope.elf.eh_frame import read_frame_table
from gilscope.elf.eh_frame_entries import FrameEntries
from gilscope.elf.image import ElfImage

__all__ = ["FrameRules", "frame_rules"]

_VERSION: Final = 1
_OMITTED: Final = 0xFF
_SORTED_PAIRS: Final = 0x3B
"""DW_EH_PE_datarel | DW_EH_PE_sdata4: what every linker writes, and all that is read here."""
_HEAD_SIZE: Final = 4
_PAIR_SIZE: Final = 8


class FrameRules(Protocol):
    """How to step from code of one file to its callers."""

    def rule_at(self, pc: int) -> UnwindRule | None:
        """Return the rule for the instruction at *pc*; None where there is no simple one.

        Raises ElfError where the file is damaged.
        """


def frame_rules(image: ElfImage) -> FrameRules:
    """Return those of *image*: searched for in its table, else read as a whole; raises ElfError."""
    return _search(image) or read_frame_table(image)


def _search(image: ElfImage) -> FrameRules | None:
    header, section = image.section(".eh_frame_hdr"), image.section(".eh_frame")
    if header is None or section is None:
        return None
    content = image.section_bytes(header)
    reader = DwarfReader(content, 0, len(content))
    if reader.remaining < _HEAD_SIZE or reader.unsigned(1) != _VERSION:
        return None
    section_encoding, count_encoding, table_encoding = (reader.unsigned(1) for _ in range(3))
    if table_encoding != _SORTED_PAIRS or _OMITTED in (section_encoding, count_encoding):
        return None
    reader.pointer(section_encoding, header.vaddr)
    count = reader.pointer(count_encoding, header.vaddr)
    pairs = reader.take(count * _PAIR_SIZE).cast("i")
    entries = FrameEntries(
        image.section_bytes(section), section.vaddr, image.architecture.registers, image.budget
    )
    return _Search(pairs, header.vaddr, section.vaddr, entries)


class _Search:
    """A binary search in the table. What it finds says itself which code it is about."""

    def __init__(
        self, pairs: Sequence[int], pairs_from: int, entries_from: int, entries: FrameEntries
    ) -> None:
        self._pairs = pairs
        self._pairs_from = pairs_from
        self._entries_from = entries_from
        self._entries = entries

    def rule_at(self, pc: int) -> UnwindRule | None:
        index = bisect_right(
            range(len(self._pairs) // 2),
            pc - self._pairs_from,
            key=lambda number: self._pairs[2 * number],
        )
        if not index:
            return None
        entry = self._pairs_from + self._pairs[2 * index - 1]
        return self._entries.rule(entry - self._entries_from, pc)
