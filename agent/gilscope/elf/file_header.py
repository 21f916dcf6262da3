"""The header of an ELF file: what it is, for which processor, and where its tables are."""

import struct
from collections.abc import Callable
from typing import Final

from gilscope.arch.base import Architecture
from gilscope.arch.registry import all_architectures, architecture_of_elf
from gilscope.elf.structs import ElfError
from gilscope.values import dataclass

__all__ = ["FileHeader", "read_file_header"]

_CLASS_64: Final = 2
_LITTLE_ENDIAN: Final = 1
_ET_EXEC: Final = 2
_ET_DYN: Final = 3
_OTHER_MACHINES: Final = {3: "x86", 40: "arm", 243: "riscv"}

# A linked file has a dozen of one and some forty of the other.
_MOST_PROGRAM_HEADERS: Final = 256
_MOST_SECTIONS: Final = 4096


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The header of an executable or a shared object."""

    kind: int
    """``e_type``."""
    machine_number: int
    """``e_machine``."""
    program_headers_offset: int
    section_headers_offset: int
    program_header_count: int
    section_header_count: int
    section_names_index: int

    @property
    def is_pie(self) -> bool:
        """Whether the file may be loaded anywhere: a shared object or a PIE executable."""
        return self.kind == _ET_DYN

    @property
    def machine(self) -> str:
        """The processor, such as ``x86-64``."""
        known = architecture_of_elf(self.machine_number)
        if known is not None:
            return known.elf_name
        return _OTHER_MACHINES.get(self.machine_number, f"machine {self.machine_number}")

    @property
    def architecture(self) -> Architecture:
        """What is known of the processor; raises ElfError where nothing is."""
        known = architecture_of_elf(self.machine_number)
        if known is None:
            understood = " and ".join(each.elf_name for each in all_architectures())
            raise ElfError(f"built for {self.machine}; only {understood} code is understood")
        return known


def read_file_header(bytes_at: Callable[[int, int], bytes]) -> FileHeader:
    """Return the header of a file whose bytes, by offset and size, *bytes_at* returns.

    Raises ElfError where it is none of an ELF64 file that can be loaded, and what *bytes_at* does.
    """
    ident = bytes_at(0, 16)
    if ident[:4] != b"\x7fELF":
        raise ElfError("not an ELF file")
    if ident[4] != _CLASS_64:
        raise ElfError("a 32-bit ELF file; only 64-bit ones are understood")
    if ident[5] != _LITTLE_ENDIAN:
        raise ElfError("a big-endian ELF file; only little-endian ones are understood")
    (
        kind,
        machine_number,
        program_headers_offset,
        section_headers_offset,
        program_header_size,
        program_header_count,
        section_header_size,
        section_header_count,
        section_names_index,
    ) = struct.unpack("<HH4x8xQQ4x2xHHHHH", bytes_at(16, 48))
    if kind not in (_ET_EXEC, _ET_DYN):
        raise ElfError(f"neither an executable nor a shared object (ELF type {kind})")
    if program_header_count and program_header_size != struct.calcsize("<IIQQQQQQ"):
        raise ElfError(f"program headers of {program_header_size} bytes")
    if section_header_count and section_header_size != struct.calcsize("<IIQQQQIIQQ"):
        raise ElfError(f"section headers of {section_header_size} bytes")
    if program_header_count > _MOST_PROGRAM_HEADERS:
        raise ElfError(f"{program_header_count} program headers")
    if section_header_count > _MOST_SECTIONS:
        raise ElfError(f"{section_header_count} sections")
    return FileHeader(
        kind,
        machine_number,
        program_headers_offset,
        section_headers_offset,
        program_header_count,
        section_header_count,
        section_names_index,
    )
