"""Which symbols of a table are kept, and the debug file in which a stripped file may have some."""

import itertools
import lzma
import re
from collections.abc import Iterator
from typing import Final

from gilscope.elf.budget import ElfBudget
from gilscope.elf.structs import ElfError, Symbol, SymbolTable, symbol_versions

__all__ = ["functions_named", "unpacked_debugdata", "versioned_symbols"]

_VERSION_LOCAL: Final = 0
_VERSION_GLOBAL: Final = 1
_VERSION_HIDDEN: Final = 0x8000

_MAX_DEBUGDATA_BYTES: Final = 16 << 20
_MAX_UNPACKER_BYTES: Final = 24 << 20

_SYMBOL_BYTES: Final = 280


def functions_named(
    table: SymbolTable, pattern: re.Pattern[str], budget: ElfBudget
) -> tuple[Symbol, ...]:
    """Return the functions that a table defines whose whole name matches; raises ElfError."""
    budget.spend(len(table))
    found: list[Symbol] = []
    for symbol in table.functions(pattern):
        budget.spend(1, _SYMBOL_BYTES + len(symbol.name))
        found.append(symbol)
    return tuple(found)


def versioned_symbols(
    table: SymbolTable, versions: memoryview | None, budget: ElfBudget, *, superseded: bool
) -> dict[str, Symbol]:
    """Return those of .dynsym that are, or are not, older versions kept for old programs.

    *versions* is .gnu.version; None: the file has none. Raises ElfError.
    """
    numbers: Iterator[int] = itertools.repeat(_VERSION_GLOBAL, len(table))
    if versions is not None:
        if len(versions) != 2 * len(table):
            raise ElfError(f"{len(versions)} bytes of versions of {len(table)} symbols")
        numbers = symbol_versions(versions)
    budget.spend(len(table))
    found: dict[str, Symbol] = {}
    for entry, version in zip(table, numbers, strict=True):
        if version == _VERSION_LOCAL or bool(version & _VERSION_HIDDEN) != superseded:
            continue
        symbol = entry.defined()
        if symbol is not None:
            budget.spend(1, _SYMBOL_BYTES + len(symbol.name))
            found[symbol.name] = symbol
    return found


def unpacked_debugdata(packed: memoryview, budget: ElfBudget) -> bytes:
    """Return the mini debug file that .gnu_debugdata holds; raises ElfError."""
    budget.search(_MAX_DEBUGDATA_BYTES)
    unpacker = lzma.LZMADecompressor(memlimit=_MAX_UNPACKER_BYTES)
    try:
        unpacked = unpacker.decompress(packed, max_length=_MAX_DEBUGDATA_BYTES)
    except (lzma.LZMAError, EOFError) as error:
        raise ElfError(f".gnu_debugdata cannot be unpacked: {error}") from error
    if not unpacker.eof:
        raise ElfError(".gnu_debugdata is truncated or too large")
    return unpacked
