"""The ELF reader against pyelftools, on real files."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pytest
from elftools.elf import enums
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerSymSection
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Symbol, SymbolTableSection
from elftools.elf.segments import InterpSegment, NoteSegment

from gilscope.elf.image import ElfError, ElfImage, Section, Segment
from gilscope.elf.image import Symbol as Defined
from gilscope.elf.plt import read_linkage
from gilscope.elf.structs import SymbolEntry
from support.elf.disassembly import instructions
from support.elf.real_files import REAL_FILES

_HIDDEN = 0x8000
_GLOB_DAT_AND_JUMP_SLOT = (6, 7)
_FUNCTIONS = (2, 10)
_WITHOUT_ADDRESS = (3, 4, 6)
"""Sections, files, and what each thread has of its own."""


@dataclass
class _Both:
    ours: ElfImage
    theirs: ELFFile


@pytest.fixture(scope="module", params=REAL_FILES)
def both(request: pytest.FixtureRequest) -> Iterator[_Both]:
    """Open a file with both readers."""
    with request.param.open("rb") as file:
        yield _Both(ElfImage(request.param.read_bytes()), ELFFile(file))


def _number(table: Mapping[str, int], value: str | int) -> int:
    """Return what stands in the file for what pyelftools calls *value*."""
    return value if isinstance(value, int) else table[value]


def _entries(file: ELFFile, table: str) -> list[SymbolEntry]:
    return [
        SymbolEntry(
            symbol.name,
            _number(enums.ENUM_ST_INFO_TYPE, symbol["st_info"]["type"]),
            _number(enums.ENUM_ST_SHNDX, symbol["st_shndx"]),
            symbol["st_value"],
            symbol["st_size"],
        )
        for symbol in _symbols(file, table)
    ]


def _symbols(file: ELFFile, table: str) -> Iterable[Symbol]:
    section = file.get_section_by_name(table)
    if section is None:
        return ()
    assert isinstance(section, SymbolTableSection | GNUVerSymSection)
    return section.iter_symbols()


def _dynamic(file: ELFFile, tag: str, attribute: str) -> list[str]:
    section = file.get_section_by_name(".dynamic")
    assert isinstance(section, DynamicSection)
    return [getattr(found, attribute) for found in section.iter_tags(tag)]


def test_sections_are_those_of_pyelftools(both: _Both) -> None:
    """
    All of them in the file's order, and what they hold.
    """
    theirs = list(both.theirs.iter_sections())

    assert [
        Section(
            section.name,
            _number(enums.ENUM_SH_TYPE_AMD64, section["sh_type"]),
            *(section[f"sh_{field}"] for field in ("flags", "addr", "offset", "size", "link")),
        )
        for section in theirs
    ] == list(both.ours.sections)
    assert [section.data() for section in theirs if section["sh_type"] != "SHT_NOBITS"] == [
        bytes(both.ours.section_bytes(section))
        for section in both.ours.sections
        if section.kind != enums.ENUM_SH_TYPE_AMD64["SHT_NOBITS"]
    ]


def test_segments_are_those_of_pyelftools(both: _Both) -> None:
    """
    Those that are loaded, and where the first one is.
    """
    expected = [
        Segment(
            segment["p_vaddr"],
            segment["p_offset"],
            segment["p_filesz"],
            segment["p_memsz"],
            is_executable=bool(segment["p_flags"] & 1),
        )
        for segment in both.theirs.iter_segments("PT_LOAD")
    ]

    assert expected == list(both.ours.segments)


def test_file_says_the_same_of_itself(both: _Both) -> None:
    """
    Kind, build-id, loader, and the libraries that it needs.
    """
    (build_id,) = (
        note["n_desc"]
        for segment in both.theirs.iter_segments()
        if isinstance(segment, NoteSegment)
        for note in segment.iter_notes()
        if note["n_type"] == "NT_GNU_BUILD_ID"
    )
    loader = [
        segment.get_interp_name()
        for segment in both.theirs.iter_segments()
        if isinstance(segment, InterpSegment)
    ]

    assert (
        both.theirs["e_type"] == "ET_DYN",
        build_id,
        loader,
        _dynamic(both.theirs, "DT_NEEDED", "needed"),
    ) == (
        both.ours.is_pie,
        both.ours.build_id,
        [name for name in [both.ours.interpreter] if name is not None],
        list(both.ours.needed),
    )


def test_addresses_are_at_the_same_places_in_the_file(both: _Both) -> None:
    """
    The first and the last byte of each segment, and those beside them.
    """
    edges = {
        edge + step
        for segment in both.theirs.iter_segments("PT_LOAD")
        for edge in (segment["p_vaddr"], segment["p_vaddr"] + segment["p_filesz"])
        for step in (-1, 0, 1)
    }

    def offset_of(vaddr: int) -> int | None:
        try:
            return both.ours.file_offset(vaddr)
        except ElfError:
            return None

    assert {vaddr: next(both.theirs.address_offsets(vaddr), None) for vaddr in edges} == {
        vaddr: offset_of(vaddr) for vaddr in edges
    }


def test_dynamic_symbols_are_those_of_pyelftools(both: _Both) -> None:
    """
    Every entry of .dynsym; and of the versions of a name, which one new programs get.
    """
    entries = _entries(both.theirs, ".dynsym")
    versions = [
        _number(enums.ENUM_VERSYM, version["ndx"])
        for version in _symbols(both.theirs, ".gnu.version")
    ]
    default = {
        entry.name: entry.vaddr
        for entry, version in zip(entries, versions, strict=True)
        if entry.section_index and entry.kind not in _WITHOUT_ADDRESS and 0 < version < _HIDDEN
    }
    names = {entry.name for entry in entries}

    assert entries == list(both.ours.dynamic_symbol_table)
    assert {name: default.get(name) for name in names} == {
        name: both.ours.default_version_symbol(name) for name in names
    }


def test_functions_are_those_of_pyelftools(both: _Both) -> None:
    """
    Those of .symtab, in its order; a stripped file has none.
    """
    assert [
        Defined(entry.name, entry.vaddr, entry.size, is_function=True)
        for entry in _entries(both.theirs, ".symtab")
        if entry.kind in _FUNCTIONS and entry.section_index and entry.name
    ] == list(both.ours.functions)


def test_slots_and_stubs_are_those_of_both_libraries(both: _Both) -> None:
    """
    Relocations say what a slot of the GOT is for, and the code of a stub through which it jumps.
    """
    names = [symbol.name for symbol in _symbols(both.theirs, ".dynsym")]
    slots = {
        relocation["r_offset"]: names[relocation["r_info_sym"]]
        for section in both.theirs.iter_sections()
        if isinstance(section, RelocationSection)
        for relocation in section.iter_relocations()
        if relocation["r_info_type"] in _GLOB_DAT_AND_JUMP_SLOT and relocation["r_info_sym"]
    }
    stubs: dict[int, str] = {}
    for section in both.theirs.iter_sections():
        if section.name.startswith(".plt"):
            stubs |= _stubs(both.ours, section["sh_addr"], section["sh_size"], slots)
    found = read_linkage(both.ours)

    assert slots == found.slots
    assert stubs == found.stubs


def _stubs(image: ElfImage, vaddr: int, size: int, slots: dict[int, str]) -> dict[int, str]:
    """Return the stubs of one section: a jump through a slot, with or without a landing pad."""
    found = {}
    pad = 0
    for each in instructions(image, vaddr, vaddr + size):
        if each.mnemonic.endswith("jmp") and each.slot in slots:
            found[pad or each.address] = slots[each.slot]
        pad = each.address if each.mnemonic == "endbr64" else 0
    return found
