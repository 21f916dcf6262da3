"""Finds branches and loads of addresses in AArch64 code.

Every word of 4 bytes is taken for an instruction: all have that length, but tables of constants
may stand between functions. The highest byte of a word tells most kinds from one another, so that
one search over every fourth byte finds them.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from gilscope.arch.aarch64.words import (
    BTI_C,
    PAGE,
    WORD,
    add_of,
    adr_of,
    is_branch,
    is_call,
    is_conditional_branch,
    load_of,
    page_of,
    signed,
    word_at,
)
from gilscope.arch.base import MATCHES_AT_ONCE, SlotBranch, Spend

__all__ = [
    "absolute_loads",
    "address_loads",
    "calls",
    "conditional_jumps",
    "is_direct_call",
    "jumps",
    "slot_branches",
    "slot_stubs",
    "tail_jump",
]

_CALL: Final = re.compile(rb"[\x94-\x97]")
_JUMP: Final = re.compile(rb"[\x14-\x17]")
_CONDITIONAL: Final = re.compile(rb"[\x34-\x37\x54\xb4-\xb7]")
_TO_REGISTER: Final = re.compile(rb"\xd6")
_PAGE: Final = re.compile(rb"[\x90\xb0\xd0\xf0]")
_NEAR: Final = re.compile(rb"[\x10\x30\x50\x70]")

_TESTS_BIT: Final = 0x36000000
"""In ``tbz`` and ``tbnz``, among the conditional branches."""
_BRANCH_REGISTER, _CALL_REGISTER = 0xD61F0000, 0xD63F0000
_BEFORE_BRANCH: Final = 8
"""Instructions before a branch to a register, of which two load it. Compilers put few between."""
_BEHIND_PAGE: Final = 64
"""Instructions behind an ``adrp`` in which the rest of the address is added."""
_STUB_REGISTERS: Final = (16, 17)
"""Of the linker: the page of the slot, and what it holds."""


def is_direct_call(code: bytes) -> bool:
    """Return whether *code* begins with ``bl``."""
    return len(code) >= WORD and is_call(word_at(code, 0))


def calls(code: memoryview, farthest: int, spend: Spend) -> Iterator[tuple[int, int]]:
    """Yield direct calls, as `gilscope.arch.base.Search`."""
    return _direct(code, _CALL, farthest, spend)


def jumps(code: memoryview, farthest: int, spend: Spend) -> Iterator[tuple[int, int]]:
    """Yield direct jumps, as `gilscope.arch.base.Search`."""
    return _direct(code, _JUMP, farthest, spend)


def conditional_jumps(code: memoryview, farthest: int, spend: Spend) -> Iterator[tuple[int, int]]:
    """Yield all conditional jumps, as `gilscope.arch.base.Search`."""
    for position in _positions(code, _CONDITIONAL, spend):
        word = word_at(code, position)
        if not is_conditional_branch(word):
            continue
        tests_bit = word & _TESTS_BIT == _TESTS_BIT
        distance = signed(word >> 5, 14 if tests_bit else 19) * WORD
        if abs(distance) <= farthest:
            yield position, position + distance


def slot_branches(code: memoryview, vaddr: int, spend: Spend) -> Iterator[SlotBranch]:
    """Yield calls and jumps to what was loaded from a slot just before, without a stub."""
    for position in _positions(code, _TO_REGISTER, spend):
        word = word_at(code, position)
        kind = word & 0xFFFFFC1F
        if kind not in (_BRANCH_REGISTER, _CALL_REGISTER):
            continue
        slot = _slot_in(code, vaddr, position, word >> 5 & 31)
        if slot is not None:
            yield SlotBranch(vaddr + position, slot, kind == _CALL_REGISTER)


def tail_jump(_code: memoryview, _end: int) -> tuple[int, int] | None:
    """Return None: jumps have one length, so that `jumps` has found it."""
    return None


def slot_stubs(code: memoryview, vaddr: int) -> Iterator[tuple[int, int]]:
    """Yield the beginnings of stubs that jump through a slot, and the slot."""
    page_register, target_register = _STUB_REGISTERS
    for match in _PAGE.finditer(bytes(code[WORD - 1 :: WORD])):
        position = match.start() * WORD
        page = page_of(word_at(code, position), vaddr + position)
        if page is None or page[0] != page_register or position + 2 * WORD > len(code):
            continue
        load = load_of(word_at(code, position + WORD))
        if load is None or load[:2] != (target_register, page_register):
            continue
        is_marked = position >= WORD and word_at(code, position - WORD) == BTI_C
        yield vaddr + position - WORD * is_marked, page[1] + load[2]


def address_loads(
    code: memoryview, vaddr: int, addresses: Collection[int], spend: Spend
) -> Iterator[tuple[int, int]]:
    """Yield the instructions that make one of *addresses* in a register, and which.

    That is an ``adr``, or the ``add`` that completes an ``adrp``; of another one that the same page
    serves, each is found.
    """
    pages = {address & -PAGE for address in addresses}
    for position in _positions(code, _PAGE, spend):
        loaded = page_of(word_at(code, position), vaddr + position)
        if loaded is not None and loaded[1] in pages:
            spend(_BEHIND_PAGE)
            yield from _completed(code, vaddr, position + WORD, loaded, addresses)
    for position in _positions(code, _NEAR, spend):
        near = adr_of(word_at(code, position), vaddr + position)
        if near is not None and near[1] in addresses:
            yield vaddr + position, near[1]


def absolute_loads(
    _code: memoryview, _vaddr: int, _addresses: Collection[int], _spend: Spend
) -> Iterator[tuple[int, int]]:
    """Yield nothing: code with a fixed address uses ``adrp``, too."""
    return iter(())


def _completed(
    code: memoryview,
    vaddr: int,
    begin: int,
    loaded: tuple[int, int],
    addresses: Collection[int],
) -> Iterator[tuple[int, int]]:
    """Yield where something is added to a register with a page, until it gets another one."""
    register, page = loaded
    for position in range(begin, min(begin + _BEHIND_PAGE * WORD, len(code) - WORD + 1), WORD):
        word = word_at(code, position)
        added = add_of(word)
        if added is not None and added[1] == register:
            if page + added[2] in addresses:
                yield vaddr + position, page + added[2]
            if added[0] == register:
                return
        other = page_of(word, vaddr + position)
        if other is not None and other[0] == register:
            return


def _slot_in(code: memoryview, vaddr: int, position: int, register: int) -> int | None:
    """Return the slot from which a register was loaded shortly before *position*."""
    offset: int | None = None
    for before in range(position - WORD, position - _BEFORE_BRANCH * WORD - 1, -WORD):
        if before < 0:
            return None
        word = word_at(code, before)
        # Whatever else has the register in its lowest bits is taken to write it.
        if word & 31 == register:
            if offset is not None:
                page = page_of(word, vaddr + before)
                return None if page is None else page[1] + offset
            load = load_of(word)
            if load is None:
                return None
            _, register, offset = load
        elif is_branch(word):
            return None
    return None


def _direct(
    code: memoryview, kind: re.Pattern[bytes], farthest: int, spend: Spend
) -> Iterator[tuple[int, int]]:
    for position in _positions(code, kind, spend):
        distance = signed(word_at(code, position), 26) * WORD
        if abs(distance) <= farthest:
            yield position, position + distance


def _positions(code: memoryview, highest: re.Pattern[bytes], spend: Spend) -> Iterator[int]:
    """Yield where the words are whose highest byte is of a kind."""
    for number, match in enumerate(highest.finditer(bytes(code[WORD - 1 :: WORD]))):
        if not number % MATCHES_AT_ONCE:
            spend(MATCHES_AT_ONCE)
        yield match.start() * WORD
