"""Compares what the resolver found with the function symbols of a file that has any."""

import re
from typing import Final

from gilscope.elf.image import ElfImage, Symbol
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.code_index import TIMED_WAITS, Code, FunctionFacts
from gilscope.runtimes.cpython.sites.lock_functions import LockFunctions

__all__ = ["check_symbols"]

_MOST_SYMBOLS: Final = 40

# What GCC and clang append to the names of the copies and parts that they make.
_SUFFIXES: Final = r"(?P<suffixes>(?:\.(?:lto_priv|constprop|part|isra|cold|llvm)(?:\.\d+)?)*)"
_TAKE: Final = "take_gil"
_TAKE_OR_DROP: Final = re.compile(rf"(?:{_TAKE}|drop_gil(?:_impl)?){_SUFFIXES}")


def check_symbols(image: ElfImage, code: Code, lock: LockFunctions) -> str:
    """Return a sentence on the comparison.

    Raises GilCodeNotFound where symbols name other functions than those found, ElfError where the
    symbol table is damaged.
    """
    symbols = image.functions_named(_TAKE_OR_DROP)
    if len(symbols) > _MOST_SYMBOLS:
        raise GilCodeNotFound(
            f"{len(symbols)} symbols are named like take_gil and drop_gil; "
            f"no build is known to have more than {_MOST_SYMBOLS}"
        )
    takes = tuple(symbol for symbol in symbols if symbol.name.startswith(_TAKE))
    drops = tuple(symbol for symbol in symbols if not symbol.name.startswith(_TAKE))
    if not takes and not drops:
        return "the file has no symbols of take_gil and drop_gil to compare with"
    if takes:
        _check_takes(code, lock, takes)
    _check_drops(code, lock, drops)
    names = sorted({symbol.name for symbol in takes + drops if not _is_cold(symbol)})
    return f"the file's symbols agree: {', '.join(names)}"


def _check_takes(code: Code, lock: LockFunctions, symbols: tuple[Symbol, ...]) -> None:
    for facts in lock.takes:
        for call in facts.named(*TIMED_WAITS):
            if not any(_contains(symbol, call.site) for symbol in symbols):
                raise GilCodeNotFound(
                    f"the code at {call.site:#x} looks like take_gil, "
                    f"but the symbols place it at {_places(symbols)}"
                )
    _check_entries(code, lock.takes, symbols, "take_gil")


def _check_drops(code: Code, lock: LockFunctions, symbols: tuple[Symbol, ...]) -> None:
    _check_entries(code, lock.drops, symbols, "drop_gil")


def _check_entries(
    code: Code, found: tuple[FunctionFacts, ...], symbols: tuple[Symbol, ...], name: str
) -> None:
    """Refuse if a named function is neither among those found nor calls one of them."""
    entries = {facts.entry for facts in found}
    leading_there = {caller for entry in entries for caller in code.groups.callers(entry)}
    for symbol in symbols:
        if _is_cold(symbol) or code.groups.entry_of(symbol.vaddr) in entries | leading_there:
            continue
        raise GilCodeNotFound(
            f"the symbol {symbol.name} stands at {symbol.vaddr:#x}, but the code that looks like "
            f"{name} is at {', '.join(f'{entry:#x}' for entry in sorted(entries))}"
        )


def _is_cold(symbol: Symbol) -> bool:
    return ".cold" in symbol.name


def _contains(symbol: Symbol, vaddr: int) -> bool:
    return symbol.vaddr <= vaddr < symbol.vaddr + symbol.size


def _places(symbols: tuple[Symbol, ...]) -> str:
    return ", ".join(f"{symbol.vaddr:#x} ({symbol.name})" for symbol in symbols)
