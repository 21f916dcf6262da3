"""The entries of an ELF64 file's tables, and how those of variable size are decoded."""

import re
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from gilscope.values import dataclass

__all__ = [
    "LONGEST_NAME",
    "ElfError",
    "Section",
    "Segment",
    "Symbol",
    "SymbolEntry",
    "SymbolTable",
    "gnu_notes",
    "string_at",
    "symbol_versions",
]

LONGEST_NAME: Final = 256
"""Bytes of a name that is read whole."""
_LARGEST_NOTE: Final = 4096

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
_KIND: Final = 0xF
_FUNCTIONS: Final = frozenset((_STT_FUNC, _STT_GNU_IFUNC))


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
        return self.kind in _FUNCTIONS

    def defined(self) -> Symbol | None:
        """Return the symbol, None for one without an address of its own in this file."""
        if not self.section_index or not self.name:
            return None
        if self.kind in (_STT_SECTION, _STT_FILE, _STT_TLS):
            return None
        return Symbol(self.name, self.vaddr, self.size, self.is_function)


class SymbolTable:
    """The entries of a symbol table, each decoded when it is asked for."""

    def __init__(self, table: memoryview, strings: memoryview) -> None:
        """Take the content of two sections; raises ElfError for a table with half an entry."""
        if len(table) % _SYMBOL.size:
            raise ElfError(f"a symbol table of {len(table)} bytes")
        self._table = table
        self._strings = strings

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._table) // _SYMBOL.size

    def __iter__(self) -> Iterator[SymbolEntry]:
        """Yield all entries by index; raises ElfError."""
        for name, kind, section_index, vaddr, size in _SYMBOL.iter_unpack(self._table):
            yield SymbolEntry(self._string(name), kind & _KIND, section_index, vaddr, size)

    def functions(self, pattern: re.Pattern[str]) -> Iterator[Symbol]:
        """Yield the functions that the file defines whose whole name matches; raises ElfError."""
        for name, info, section_index, vaddr, size in _SYMBOL.iter_unpack(self._table):
            kind = info & _KIND
            if kind not in _FUNCTIONS or not pattern.fullmatch(text := self._string(name)):
                continue
            symbol = SymbolEntry(text, kind, section_index, vaddr, size).defined()
            if symbol is not None:
                yield symbol

    def function_at(self, vaddr: int) -> Symbol | None:
        """Return the function that the file defines around an address; raises ElfError."""
        for name, info, section_index, start, size in _SYMBOL.iter_unpack(self._table):
            if start <= vaddr < start + size and info & _KIND in _FUNCTIONS and section_index:
                return Symbol(self._string(name), start, size, is_function=True)
        return None

    def functions_at(self, vaddrs: Iterable[int]) -> dict[int, Symbol]:
        """Return the function around each address that has one; raises ElfError.

        All in one pass: large programs have hundreds of thousands of symbols.
        """
        wanted = sorted(set(vaddrs))
        found: dict[int, Symbol] = {}
        for name, info, section_index, start, size in _SYMBOL.iter_unpack(self._table):
            place = bisect_left(wanted, start)
            if place == len(wanted) or wanted[place] >= start + size:
                continue
            if info & _KIND not in _FUNCTIONS or not section_index:
                continue
            symbol = Symbol(self._string(name), start, size, is_function=True)
            for vaddr in wanted[place : bisect_left(wanted, start + size)]:
                found.setdefault(vaddr, symbol)
        return found

    def may_name(self, name: str) -> bool:
        """Return whether an entry may have that name: whether a string of the table ends in it.

        No entry is decoded: large programs that are asked for a few names have none of them.
        """
        return bytes(self._strings).find(name.encode() + b"\0") >= 0

    @property
    def string_bytes(self) -> int:
        """How much `may_name` searches."""
        return len(self._strings)

    def name(self, index: int) -> str:
        """Return the name of one entry; raises ElfError."""
        return self._string(_SYMBOL.unpack_from(self._table, index * _SYMBOL.size)[0])

    def _string(self, offset: int) -> str:
        text = bytes(self._strings[offset : offset + LONGEST_NAME + 1])
        if len(text) > LONGEST_NAME and b"\0" not in text:
            # Mangled names may be longer. None of them is looked for; they need only differ.
            return f"{text.decode('utf-8', 'surrogateescape')}~{offset:x}"
        return string_at(self._strings, offset)


def symbol_versions(table: memoryview) -> Iterator[int]:
    """Yield the entries of .gnu.version, whose size is even."""
    return (version for (version,) in struct.iter_unpack("<H", table))


def string_at(table: memoryview, offset: int, most: int = LONGEST_NAME) -> str:
    """Return the zero-terminated string of at most *most* bytes at an offset of a string table.

    Raises ElfError.
    """
    text = bytes(table[offset : offset + most + 1])
    end = text.find(b"\0")
    if end < 0:
        raise ElfError(
            f"no string of at most {most} bytes at offset {offset:#x} "
            f"of a string table of {len(table)} bytes"
        )
    return text[:end].decode("utf-8", "surrogateescape")


def gnu_notes(notes: memoryview, alignment: int) -> Iterator[tuple[int, bytes]]:
    """Yield type and description of the notes whose owner is GNU; raises ElfError.

    Of a large description only the beginning is returned.

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
        if bytes(notes[name_start : name_start + min(name_size, _LARGEST_NOTE)]) == _GNU:
            yield kind, bytes(notes[start : start + min(size, _LARGEST_NOTE)])
        position = _padded(start + size, padding)


def _padded(position: int, padding: int) -> int:
    return -(-position // padding) * padding
