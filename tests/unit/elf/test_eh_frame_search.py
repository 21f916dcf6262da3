"""Rules that are searched for, against those of the table that is read as a whole."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.elf.eh_frame import FrameTable, read_frame_table
from gilscope.elf.eh_frame_search import frame_rules
from gilscope.elf.image import ElfError, ElfImage
from gilscope.elf.structs import Section

_EVERY = 50


@pytest.fixture(scope="module")
def image() -> ElfImage:
    """Return the program that runs these tests."""
    return ElfImage(Path(sys.executable).resolve().read_bytes())


def test_they_are_those_of_the_whole_table(image: ElfImage) -> None:
    """
    At beginnings and ends of functions, and between functions where nothing is known.
    """
    table, rules = read_frame_table(image), frame_rules(image)
    assert not isinstance(rules, FrameTable)
    for start, end in table.functions[::_EVERY]:
        for pc in (start, (start + end) // 2, end - 1, end):
            assert table.rule_at(pc) == rules.rule_at(pc), hex(pc)
    assert rules.rule_at(0) is None
    assert rules.rule_at(1 << 47) is None


def test_files_without_a_sorted_table(image: ElfImage, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They are read as a whole; so are those whose table is in a form that nobody writes.
    """
    section = image.section

    def hidden(name: str) -> Section | None:
        return None if name == ".eh_frame_hdr" else section(name)

    def other(name: str) -> Section | None:
        found = section(name)
        # The section that is told begins with other bytes than a version.
        is_header = name == ".eh_frame_hdr" and found is not None
        return replace(found, offset=found.offset + 1) if is_header and found else found

    for found in (hidden, other):
        monkeypatch.setattr(image, "section", found)
        assert isinstance(frame_rules(image), FrameTable)


def test_a_table_that_is_cut(image: ElfImage, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It is refused: its entries would lie outside of it.
    """
    section = image.section

    def cut(name: str) -> Section | None:
        found = section(name)
        is_header = name == ".eh_frame_hdr" and found is not None
        return replace(found, size=64) if is_header and found else found

    monkeypatch.setattr(image, "section", cut)
    with pytest.raises(ElfError):
        frame_rules(image)
