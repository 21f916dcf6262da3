"""Facts from the image of an ELF64 file: its sections, segments, symbols and dependencies.

Our own, because files are not ours: what one may cost is bounded, which in pyelftools it is not.
A file with two hundred tables of a million notes is refused after 3 s; there one table takes 11 s.
Of a CPython 3.11 of 7 MB, all that is asked for takes 0.015 s and 6 MB, there 0.06 s and 5 MB, and
0.01 s less to import. Tests hold what is read against pyelftools.
"""

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator
from functools import cached_property
from mmap import mmap
from typing import Final, Protocol

from gilscope.arch.base import Architecture
from gilscope.elf.budget import ElfBudget
from gilscope.elf.file_header import read_file_header
from gilscope.elf.structs import (
    ElfError,
    Section,
    Segment,
    Symbol,
    SymbolTable,
    gnu_notes,
    string_at,
)
from gilscope.elf.symbols import functions_named, unpacked_debugdata, versioned_symbols

__all__ = ["ElfError", "ElfImage", "Section", "Segment", "Symbol"]

_PT_LOAD: Final = 1
_PT_DYNAMIC: Final = 2
_PT_INTERP: Final = 3
_PT_NOTE: Final = 4
_PT_TLS: Final = 7
_PF_X: Final = 1

_NT_GNU_BUILD_ID: Final = 3

_DT_NEEDED: Final = 1
_DT_STRTAB: Final = 5
_DT_STRSZ: Final = 10

_SECTION_BYTES: Final = 400
_DYNAMIC_BYTES: Final = 150
_LONGEST_PATH: Final = 4096
_SMALLEST_NOTE: Final = 12
_STEPS_OF_NOTE: Final = 2
_LONGEST_BUILD_ID: Final = 64
# A digest is quicker than a search.
_DIGESTED_A_STEP: Final = 512
_FOUND_A_STEP: Final = 1024
"""Bytes that are searched for one name in the time of a step."""
_EVERY_NAME: Final = re.compile(r"(?s:.*)")


class Content(Protocol):
    """The bytes of a file that are read when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes: ...


class ElfImage:
    """A read-only view of one ELF64 file.

    Parts are decoded when they are first asked for, and every one of them raises ElfError where the
    image is damaged, or where more work or memory would be needed than *budget* has. Nothing of the
    image is kept but the reference that was given.
    """

    def __init__(
        self, image: "bytes | memoryview | mmap | Content", budget: ElfBudget | None = None
    ) -> None:
        self._image = image
        self.budget = ElfBudget() if budget is None else budget
        """What the file may cost, together with all that is found in it."""
        self._header = read_file_header(self.bytes_at)

    def bytes_at(self, offset: int, size: int) -> bytes:
        """Return *size* bytes at a file *offset*."""
        return bytes(self._view(offset, size))

    def _view(self, offset: int, size: int) -> memoryview:
        """Return *size* bytes at a file *offset*, without a copy where that is possible."""
        if offset < 0 or size < 0 or offset + size > len(self._image):
            raise ElfError(
                f"truncated or corrupt: {size} bytes at offset {offset:#x} "
                f"of a file of {len(self._image)} bytes"
            )
        if isinstance(self._image, bytes | memoryview):
            return memoryview(self._image)[offset : offset + size]
        # Of a mapping a view would keep it from being closed.
        return memoryview(self._image[offset : offset + size])

    @property
    def machine(self) -> str:
        """The processor, such as ``x86-64``."""
        return self._header.machine

    @property
    def architecture(self) -> Architecture:
        """What is known of the processor; raises ElfError where nothing is."""
        return self._header.architecture

    @property
    def is_pie(self) -> bool:
        """Whether the file may be loaded anywhere: a shared object or a PIE executable."""
        return self._header.is_pie

    @cached_property
    def build_id(self) -> str:
        """The GNU build-id in hexadecimal, or ``sha256:`` and the digest of the whole image."""
        for kind, description in self._notes():
            if kind == _NT_GNU_BUILD_ID and 0 < len(description) <= _LONGEST_BUILD_ID:
                return description.hex()
        return f"sha256:{self.digest}"

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the whole image, in hexadecimal."""
        self.budget.spend(len(self._image) // _DIGESTED_A_STEP)
        return hashlib.sha256(self.bytes_at(0, len(self._image))).hexdigest()

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The PT_LOAD segments, in the file's order."""
        return tuple(
            Segment(vaddr, offset, file_size, memory_size, bool(flags & _PF_X))
            for kind, flags, offset, vaddr, file_size, memory_size, _ in self._program_headers()
            if kind == _PT_LOAD
        )

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections, the null one at index 0 included; empty without section headers."""
        header, count = self._header, self._header.section_header_count
        self.budget.spend(count, count * _SECTION_BYTES)
        headers = list(
            struct.iter_unpack(
                "<IIQQQQI4x8x8x", self._view(header.section_headers_offset, 64 * count)
            )
        )
        if not headers:
            return ()
        if header.section_names_index >= count:
            raise ElfError(f"section names in section {header.section_names_index} of {count}")
        names_header = headers[header.section_names_index]
        names = self._view(names_header[4], names_header[5])
        return tuple(Section(string_at(names, name), *rest) for name, *rest in headers)

    def section(self, name: str) -> Section | None:
        """Return the first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def section_bytes(self, section: Section) -> memoryview:
        """Return what the section holds; empty for one without a place in the file."""
        if not section.is_in_file:
            return memoryview(b"")
        return self._view(section.offset, section.size)

    def file_offset(self, vaddr: int) -> int:
        """Return the file offset of the byte that is loaded at a virtual address."""
        for segment in self.segments:
            if 0 <= vaddr - segment.vaddr < segment.file_size:
                return vaddr - segment.vaddr + segment.offset
        raise ElfError(f"no PT_LOAD segment holds the address {vaddr:#x}")

    def is_code(self, vaddr: int) -> bool:
        """Return whether the file holds the byte at a virtual address, to be loaded as code."""
        return any(
            segment.is_executable and 0 <= vaddr - segment.vaddr < segment.file_size
            for segment in self.segments
        )

    def read(self, vaddr: int, size: int) -> bytes:
        """Return *size* bytes at a virtual address, from the file."""
        return self.bytes_at(self.file_offset(vaddr), size)

    @cached_property
    def dynamic_symbol_table(self) -> SymbolTable:
        """.dynsym, undefined symbols included: what relocations refer to by index."""
        return self._symbol_table(".dynsym")

    @cached_property
    def dynamic_symbols(self) -> dict[str, Symbol]:
        """The symbols that .dynsym defines; of several versions of a name, the default one."""
        return self._superseded_symbols | self._default_symbols

    def default_version_symbol(self, name: str) -> int | None:
        """Return the address of the version of an exported symbol that new links get.

        A library may keep older versions of a function alive under the same name; these are not
        what a program that was linked today calls.
        """
        table = self.dynamic_symbol_table
        self.budget.spend(table.string_bytes // _FOUND_A_STEP)
        if not table.may_name(name):
            return None
        symbol = self._default_symbols.get(name)
        return None if symbol is None else symbol.vaddr

    @cached_property
    def functions(self) -> tuple[Symbol, ...]:
        """Function symbols of .symtab, else of the .gnu_debugdata mini debug file; else empty."""
        return self.functions_named(_EVERY_NAME)

    def functions_named(self, pattern: re.Pattern[str]) -> tuple[Symbol, ...]:
        """Return those of `functions` whose whole name matches; no others are kept."""
        debugdata = self.section(".gnu_debugdata")
        if self.section(".symtab") is None and debugdata is not None:
            unpacked = unpacked_debugdata(self.section_bytes(debugdata), self.budget)
            debug_file = ElfImage(unpacked, self.budget)
            # One within another is not looked for.
            return debug_file._functions_named(pattern)
        return self._functions_named(pattern)

    def function_at(self, vaddr: int) -> Symbol | None:
        """Return the function around an address, None where no symbol tells one.

        By the table of all symbols where the file has it, else by the one of those it exports.
        """
        for table in (self._symbol_table(".symtab"), self.dynamic_symbol_table):
            self.budget.spend(len(table))
            found = table.function_at(vaddr)
            if found is not None:
                return found
        return None

    def functions_at(self, vaddrs: Iterable[int]) -> dict[int, Symbol]:
        """Return the function around each of *vaddrs* that has one, as `function_at` does."""
        left = set(vaddrs)
        found: dict[int, Symbol] = {}
        for table in (self._symbol_table(".symtab"), self.dynamic_symbol_table):
            self.budget.spend(len(table))
            found |= table.functions_at(left - found.keys())
        return found

    def _functions_named(self, pattern: re.Pattern[str]) -> tuple[Symbol, ...]:
        return functions_named(self._symbol_table(".symtab"), pattern, self.budget)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """DT_NEEDED: the libraries that the file asks for, in its order."""
        return self._dynamic_strings(_DT_NEEDED)

    @cached_property
    def interpreter(self) -> str | None:
        """PT_INTERP: the dynamic loader that an executable asks for."""
        for kind, _, offset, _, file_size, _, _ in self._program_headers():
            if kind == _PT_INTERP:
                return string_at(self._view(offset, file_size), 0, _LONGEST_PATH)
        return None

    @property
    def thread_block_size(self) -> int:
        """PT_TLS: the bytes of the variables that each thread has, aligned; 0: there are none."""
        for kind, _, _, _, _, memory_size, alignment in self._program_headers():
            if kind == _PT_TLS:
                return -(-memory_size // max(1, alignment)) * max(1, alignment)
        return 0

    def _program_headers(self) -> Iterator[tuple[int, ...]]:
        """Yield type, flags, offset, vaddr, file size, memory size, alignment of each."""
        header = self._header
        table = self.bytes_at(header.program_headers_offset, 56 * header.program_header_count)
        return struct.iter_unpack("<IIQQ8xQQQ", table)

    def _notes(self) -> Iterator[tuple[int, bytes]]:
        for kind, _, offset, _, file_size, _, alignment in self._program_headers():
            if kind == _PT_NOTE:
                self.budget.spend(_STEPS_OF_NOTE * (file_size // _SMALLEST_NOTE))
                yield from gnu_notes(self._view(offset, file_size), alignment)

    def _symbol_table(self, table_name: str) -> SymbolTable:
        table = self.section(table_name)
        if table is None:
            return SymbolTable(memoryview(b""), memoryview(b""))
        if table.link >= len(self.sections):
            raise ElfError(f"{table_name} has its strings in section {table.link}")
        strings = self.section_bytes(self.sections[table.link])
        return SymbolTable(self.section_bytes(table), strings)

    @cached_property
    def _default_symbols(self) -> dict[str, Symbol]:
        return self._versioned_symbols(superseded=False)

    @cached_property
    def _superseded_symbols(self) -> dict[str, Symbol]:
        return self._versioned_symbols(superseded=True)

    def _versioned_symbols(self, *, superseded: bool) -> dict[str, Symbol]:
        """Return those of .dynsym that are, or are not, older versions kept for old programs."""
        table, section = self.dynamic_symbol_table, self.section(".gnu.version")
        versions = None if section is None else self.section_bytes(section)
        return versioned_symbols(table, versions, self.budget, superseded=superseded)

    @cached_property
    def _dynamic_entries(self) -> tuple[tuple[int, int], ...]:
        for kind, _, offset, _, file_size, _, _ in self._program_headers():
            if kind == _PT_DYNAMIC:
                return tuple(self._entries_up_to_null(self._view(offset, file_size & ~15)))
        return ()

    def _entries_up_to_null(self, table: memoryview) -> Iterator[tuple[int, int]]:
        for tag, value in struct.iter_unpack("<QQ", table):
            if not tag:
                return
            self.budget.spend(1, _DYNAMIC_BYTES)
            yield tag, value

    def _dynamic_strings(self, wanted_tag: int) -> tuple[str, ...]:
        offsets = [value for tag, value in self._dynamic_entries if tag == wanted_tag]
        if not offsets:
            return ()
        values = dict(self._dynamic_entries)
        if _DT_STRTAB not in values or _DT_STRSZ not in values:
            raise ElfError("the dynamic section names no string table")
        strings = self._view(self.file_offset(values[_DT_STRTAB]), values[_DT_STRSZ])
        self.budget.spend(len(offsets), len(offsets) * _LONGEST_PATH)
        return tuple(string_at(strings, offset, _LONGEST_PATH) for offset in offsets)
