"""Which symbols of a table are kept."""

import lzma
import re
import struct

import pytest

from gilscope.elf.budget import ElfBudget
from gilscope.elf.structs import ElfError, SymbolTable
from gilscope.elf.symbols import functions_named, unpacked_debugdata, versioned_symbols

_FUNCTION, _OBJECT = 2, 1
_LOCAL, _GLOBAL, _HIDDEN = 0, 1, 0x8000


def _table(*symbols: tuple[str, int, int]) -> SymbolTable:
    """Return a table of symbols, each a name, what it is, and an address."""
    strings, entries = b"\0", b""
    for name, kind, vaddr in symbols:
        entries += struct.pack("<IBxHQQ", len(strings), kind, 1, vaddr, 8)
        strings += name.encode() + b"\0"
    return SymbolTable(memoryview(entries), memoryview(strings))


def _versions(*numbers: int) -> memoryview:
    return memoryview(struct.pack(f"<{len(numbers)}H", *numbers))


def test_versions_tell_the_default_from_what_is_kept_for_old_programs() -> None:
    """
    Local ones are neither; without versions all are default ones.
    """
    table = _table(("f", _FUNCTION, 10), ("f", _FUNCTION, 20), ("g", _OBJECT, 30))
    versions = _versions(2 | _HIDDEN, 3, _LOCAL)

    def found(versions: memoryview | None, *, superseded: bool) -> dict[str, int]:
        symbols = versioned_symbols(table, versions, ElfBudget(), superseded=superseded)
        return {name: symbol.vaddr for name, symbol in symbols.items()}

    assert {"f": 20} == found(versions, superseded=False)
    assert {"f": 10} == found(versions, superseded=True)
    assert {"f": 20, "g": 30} == found(None, superseded=False)
    assert {} == found(None, superseded=True)


def test_as_many_versions_as_symbols() -> None:
    """
    Which belongs to which would be a guess otherwise.
    """
    with pytest.raises(ElfError, match="4 bytes of versions of 1 symbols"):
        versioned_symbols(
            _table(("f", _FUNCTION, 10)), _versions(1, 1), ElfBudget(), superseded=False
        )


def test_functions_are_found_by_their_whole_name() -> None:
    """
    And what is kept of them is counted.
    """
    table = _table(("take", _FUNCTION, 1), ("take_gil", _FUNCTION, 2), ("take", _OBJECT, 3))
    budget = ElfBudget()

    (found,) = functions_named(table, re.compile("take"), budget)

    assert ("take", 1) == (found.name, found.vaddr)
    assert 3 + 1 == budget.steps
    assert budget.kept_bytes > 0


def test_a_debug_file_is_unpacked_whole_or_not_at_all() -> None:
    """
    Half of one would be taken for one without symbols.
    """
    packed = lzma.compress(b"debug file" * 100)

    assert b"debug file" * 100 == unpacked_debugdata(memoryview(packed), ElfBudget())
    for part in (packed[:-20], b"no archive"):
        with pytest.raises(ElfError, match="gnu_debugdata"):
            unpacked_debugdata(memoryview(part), ElfBudget())
