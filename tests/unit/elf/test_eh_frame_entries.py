"""Single entries of .eh_frame, against the table of all of them."""

import sys
from pathlib import Path

import pytest

from gilscope.arch.x86_64.architecture import X86_64
from gilscope.elf.budget import ElfBudget
from gilscope.elf.eh_frame import read_frame_table
from gilscope.elf.eh_frame_entries import FrameEntries
from gilscope.elf.image import ElfError, ElfImage


@pytest.fixture(scope="module")
def image() -> ElfImage:
    """Return the program that runs these tests."""
    return ElfImage(Path(sys.executable).resolve().read_bytes())


def _entries(image: ElfImage) -> FrameEntries:
    section = image.section(".eh_frame")
    assert section is not None
    registers = image.architecture.registers
    return FrameEntries(image.section_bytes(section), section.vaddr, registers, image.budget)


def test_entries_one_after_the_other(image: ElfImage) -> None:
    """
    They are about the pieces of code that the table has; a rule is that of the code it is about.
    """
    entries, table = _entries(image), read_frame_table(image)
    found: list[int] = []
    at = 0
    while len(found) < 100:
        span, behind = entries.span(at)
        if span is not None and span[1]:
            start, size = span
            found.append(start)
            assert entries.rule(at, start) == table.rule_at(start)
            assert entries.rule(at, start + size) is None
            assert entries.rule(at, start - 1) is None
        else:
            assert entries.rule(at, 0) is None
        at = behind

    assert set(found) <= set(table.starts)


def test_no_entry_beyond_the_end() -> None:
    """
    It is refused.
    """
    entries = FrameEntries(memoryview(b""), 0, X86_64.registers, ElfBudget())

    with pytest.raises(ElfError):
        entries.span(8)
    with pytest.raises(ElfError):
        entries.rule(8, 0)
