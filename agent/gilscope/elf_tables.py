"""The entries of an ELF64 file's tables, and how those of variable size are decoded."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = [
    "ElfError",
    "Section",
    "Segment",
    "Symbol",
    "SymbolEntry",
    "gnu_notes",
    "string_at",
    "symbol_entries",
    "symbol_versions",
]

_SYMBOL: Final = struct.Struct("<IBxHQQ")
_NOTE_HEADER: Final = struct.Struct("<III")
_NOTE_PADDING: Final = 4
_GNU: Final = b"GNU\0"

_SHT_NULL: Final = 0
_SHT_NOBITS: Final = 8
_SHF_EXECINSTR: Final = 4

_STT_FUNC: Final = 2
_STT_SECTION: Final = 3
_STT_FILE: Final = 4
_STT_TLS: Final = 6
_STT_GNU_IFUNC: Final = 10


class ElfError(ValueError):
    """The image is not an ELF64 file, or it is truncated or contradicts itself."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section header."""

    name: str
    kind: int
    """``sh_type``."""
    flags: int
    vaddr: int
    offset: int
    size: int
    link: int
    """Index of the section that this one refers to, such as a symbol table's strings."""

    @property
    def is_code(self) -> bool:
        """Whether the section holds instructions."""
        return bool(self.flags & _SHF_EXECINSTR) and self.is_in_file

    @property
    def is_in_file(self) -> bool:
        """Whether the file holds the section's content."""
        return self.kind not in (_SHT_NULL, _SHT_NOBITS)


@dataclass(frozen=True, slots=True)
class Segment:
    """One PT_LOAD program header."""

    vaddr: int
    offset: int
    file_size: int
    memory_size: int
    is_executable: bool


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol that the file defines."""

    name: str
    vaddr: int
    size: int
    is_function: bool


@dataclass(frozen=True, slots=True)
class SymbolEntry:
    """One entry of a symbol table, defined in the file or not."""

    name: str
    kind: int
    """``STT_*``, the lower half of ``st_info``."""
    section_index: int
    """0: defined in another file."""
    vaddr: int
    size: int

    @property
    def is_function(self) -> bool:
        """Whether it is code."""
        return self.kind in (_STT_FUNC, _STT_GNU_IFUNC)

    def defined(self) -> Symbol | None:
        """Return the symbol, None for one without an address of its own in this file."""
        if not self.section_index or not self.name:
            return None
        if self.kind in (_STT_SECTION, _STT_FILE, _STT_TLS):
            return None
        return Symbol(self.name, self.vaddr, self.size, self.is_function)


def symbol_entries(table: bytes, strings: bytes) -> Iterator[SymbolEntry]:
    """Yield the entries of a symbol table; raises ElfError."""
    if len(table) % _SYMBOL.size:
        raise ElfError(f"a symbol table of {len(table)} bytes")
    for name, kind, section_index, vaddr, size in _SYMBOL.iter_unpack(table):
        yield SymbolEntry(string_at(strings, name), kind & 0xF, section_index, vaddr, size)


def symbol_versions(table: bytes) -> tuple[int, ...]:
    """Return the entries of .gnu.version; raises ElfError."""
    if len(table) % 2:
        raise ElfError(f"symbol versions of {len(table)} bytes")
    return struct.unpack(f"<{len(table) // 2}H", table)


def string_at(table: bytes, offset: int) -> str:
    """Return the zero-terminated string at an offset of a string table; raises ElfError."""
    end = table.find(b"\0", offset)
    if end < 0:
        raise ElfError(f"no string at offset {offset:#x} of a string table of {len(table)} bytes")
    return table[offset:end].decode("utf-8", "surrogateescape")


def gnu_notes(notes: bytes, alignment: int) -> Iterator[tuple[int, bytes]]:
    """Yield type and description of the notes whose owner is GNU; raises ElfError.

    *alignment* is that of the segment: names and descriptions are padded to 4 or to 8 bytes.
    """
    padding = max(_NOTE_PADDING, min(alignment, 2 * _NOTE_PADDING))
    position = 0
    while position + _NOTE_HEADER.size <= len(notes):
        name_size, size, kind = _NOTE_HEADER.unpack_from(notes, position)
        name_start = position + _NOTE_HEADER.size
        start = _padded(name_start + name_size, padding)
        if start + size > len(notes):
            raise ElfError("a note reaches beyond its segment")
        if notes[name_start : name_start + name_size] == _GNU:
            yield kind, notes[start : start + size]
        position = _padded(start + size, padding)


def _padded(position: int, padding: int) -> int:
    return -(-position // padding) * padding
