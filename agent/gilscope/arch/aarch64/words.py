"""Tells AArch64 instructions from one another, each a word of 4 bytes.

The masks are those of the Arm Architecture Reference Manual, C4.1.
"""

import struct
from typing import Final

__all__ = [
    "BTI_C",
    "PAGE",
    "WORD",
    "add_of",
    "adr_of",
    "is_authenticated",
    "is_branch",
    "is_call",
    "is_comparison",
    "is_conditional_branch",
    "is_load_literal",
    "load_of",
    "page_of",
    "signed",
    "word_at",
]

WORD: Final = 4
"""Bytes of an instruction."""
PAGE: Final = 4096
"""Bytes of what ``adrp`` counts in."""
BTI_C: Final = 0xD503245F
"""A place that may be called, with branch target identification."""

# A mask, and what is left under it of all instructions of a kind.
_Form = tuple[int, int]
_B_COND: Final[_Form] = (0xFF000010, 0x54000000)
_CBZ_CBNZ_TBZ_TBNZ: Final[_Form] = (0x7C000000, 0x34000000)
_B_BL: Final[_Form] = (0x7C000000, 0x14000000)
_BL: Final[_Form] = (0xFC000000, 0x94000000)
_BR_BLR_RET: Final[_Form] = (0xFE000000, 0xD6000000)
_WITH_KEY: Final = 0x01000C00
"""Of the last: bits of those that check a signed address."""
_LDR_LITERAL: Final[_Form] = (0x3B000000, 0x18000000)
_ADRP: Final[_Form] = (0x9F000000, 0x90000000)
_ADR: Final[_Form] = (0x9F000000, 0x10000000)
_ADD: Final[_Form] = (0xFFC00000, 0x91000000)
_LDR: Final[_Form] = (0xFFC00000, 0xF9400000)
_CMP_W0: Final[_Form] = (0xFFC003FF, 0x7100001F)

_unpack = struct.Struct("<I").unpack_from


def word_at(code: bytes | memoryview, position: int) -> int:
    """Return the instruction at a position of *code*, which has all of it."""
    (word,) = _unpack(code, position)
    return int(word)


def signed(number: int, bits: int) -> int:
    """Return the lowest *bits* of a number, the highest of which is its sign."""
    number &= (1 << bits) - 1
    return number - ((number & 1 << bits - 1) << 1)


def is_conditional_branch(word: int) -> bool:
    """Return whether it is ``b.cond``, ``cbz``, ``cbnz``, ``tbz`` or ``tbnz``."""
    return _is(word, _B_COND) or _is(word, _CBZ_CBNZ_TBZ_TBNZ)


def is_call(word: int) -> bool:
    """Return whether it is ``bl``."""
    return _is(word, _BL)


def is_branch(word: int) -> bool:
    """Return whether the next instruction may be another one than the one behind it."""
    return is_conditional_branch(word) or _is(word, _B_BL) or _is(word, _BR_BLR_RET)


def is_authenticated(word: int) -> bool:
    """Return whether it is a branch to a register that checks a signed address."""
    return _is(word, _BR_BLR_RET) and bool(word & _WITH_KEY)


def is_comparison(word: int) -> bool:
    """Return whether it is ``cmp w0, #number``, of a function's result."""
    return _is(word, _CMP_W0)


def is_load_literal(word: int) -> bool:
    """Return whether it loads, or prefetches, a word relative to its own address."""
    return _is(word, _LDR_LITERAL)


def page_of(word: int, address: int) -> tuple[int, int] | None:
    """Return register and page that an ``adrp`` at *address* loads; None: it is another one."""
    if not _is(word, _ADRP):
        return None
    return word & 31, (address & -PAGE) + _distance_of(word) * PAGE


def adr_of(word: int, address: int) -> tuple[int, int] | None:
    """Return register and address that an ``adr`` at *address* loads; None: it is another one."""
    if not _is(word, _ADR):
        return None
    return word & 31, address + _distance_of(word)


def add_of(word: int) -> tuple[int, int, int] | None:
    """Return what ``add xd, xn, #number`` names: d, n and the number; None: it is another one."""
    if not _is(word, _ADD):
        return None
    return word & 31, word >> 5 & 31, word >> 10 & 0xFFF


def load_of(word: int) -> tuple[int, int, int] | None:
    """Return what ``ldr xt, [xn, #offset]`` names: t, n and the offset; None: it is another."""
    if not _is(word, _LDR):
        return None
    return word & 31, word >> 5 & 31, (word >> 10 & 0xFFF) * 8


def _is(word: int, form: _Form) -> bool:
    mask, value = form
    return word & mask == value


def _distance_of(word: int) -> int:
    """Return the number in an ``adr`` or ``adrp``: its two lowest bits stand apart."""
    return signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
