"""What the header of an ELF file says."""

import struct

import pytest

from gilscope.elf.file_header import FileHeader, read_file_header
from gilscope.elf.structs import ElfError

_X86_64, _AARCH64, _RISCV, _UNHEARD_OF = 62, 183, 243, 4711
_FIXED, _MOVABLE = 2, 3


def _read(kind: int = _MOVABLE, machine: int = _X86_64, sections: int = 30) -> FileHeader:
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    data = ident + struct.pack(
        "<HH4x8xQQ4x2xHHHHH", kind, machine, 64, 4096, 56, 9, 64, sections, 29
    )
    return read_file_header(lambda offset, size: data[offset : offset + size])


def test_tables_are_where_it_says() -> None:
    """
    Their places and their numbers of entries.
    """
    assert FileHeader(_MOVABLE, _X86_64, 64, 4096, 9, 30, 29) == _read()


def test_fixed_and_movable_files_are_told_apart() -> None:
    """
    And what is neither, such as an object file, is refused.
    """
    assert [False, True] == [_read(kind=kind).is_pie for kind in (_FIXED, _MOVABLE)]
    with pytest.raises(ElfError, match="ELF type 1"):
        _read(kind=1)


@pytest.mark.parametrize(("machine", "name"), [(_RISCV, "riscv"), (_UNHEARD_OF, "machine 4711")])
def test_another_processor_has_a_name_and_no_code_that_is_understood(
    machine: int, name: str
) -> None:
    """
    The message says which one it is.
    """
    header = _read(machine=machine)

    assert name == header.machine
    with pytest.raises(ElfError, match=f"built for {name}; only x86-64 and aarch64"):
        _ = header.architecture


def test_processors_that_are_known_have_their_code() -> None:
    """
    By the number in the header.
    """
    assert ["x86_64", "aarch64"] == [
        _read(machine=machine).architecture.name for machine in (_X86_64, _AARCH64)
    ]


def test_a_file_with_too_many_tables_is_refused() -> None:
    """
    No linker makes them.
    """
    with pytest.raises(ElfError, match="5000 sections"):
        _read(sections=5000)
