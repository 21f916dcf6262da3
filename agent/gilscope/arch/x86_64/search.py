"""Finds what reads like branches and loads of addresses in x86-64 code, without disassembling it.

Every byte is taken for the beginning of an instruction. A few finds may be bytes inside others:
small distances are frequent in code, so that one build in some thousands has such a call of one
library function. Whoever puts a probe on one has to ask `gilscope.elf.instruction_starts` first.
"""

import re
import struct
from collections.abc import Collection, Iterator
from typing import Final

from gilscope.arch.base import MATCHES_AT_ONCE, SlotBranch, Spend

__all__ = [
    "CALL_LENGTH",
    "SLOT_CALL_LENGTH",
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

CALL_LENGTH: Final = 5
SLOT_CALL_LENGTH: Final = 6

_CALL: Final = b"\xe8"
_JUMP: Final = b"\xe9"
_CONDITIONAL_JUMP: Final = rb"\x0f[\x80-\x8f]"
_THROUGH_SLOT: Final = rb"\xff[\x15\x25]"
_CALL_THROUGH_SLOT: Final = 0x15
_SHORT_JUMP: Final = 0xEB
_SHORT_LENGTH: Final = 2

_JUMP_THROUGH_SLOT: Final = re.compile(rb"\xff\x25(?=....)", re.DOTALL)
_BND: Final = b"\xf2"
_ENDBR64: Final = b"\xf3\x0f\x1e\xfa"

# lea reg, [rip + distance]: position-independent code.
_LOAD_ADDRESS: Final = re.compile(
    rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](?=....)", re.DOTALL
)
_LOAD_ADDRESS_LENGTH: Final = 7
# mov r32, imm32: code linked to a fixed address in the lowest 4 GB.
_MOVE_ADDRESS: Final = rb"[\xb8-\xbf]"
_LARGEST_IMMEDIATE: Final = 0xFFFFFFFF

_distance = struct.Struct("<i").unpack_from


def is_direct_call(code: bytes) -> bool:
    """Return whether *code* begins with a direct call."""
    return code[:1] == _CALL


def calls(code: memoryview, farthest: int, spend: Spend) -> Iterator[tuple[int, int]]:
    """Yield direct calls, as `gilscope.arch.base.Search`."""
    return _relative(code, _CALL, _highest_byte(farthest), spend)


def jumps(code: memoryview, farthest: int, spend: Spend) -> Iterator[tuple[int, int]]:
    """Yield direct jumps, as `gilscope.arch.base.Search`."""
    return _relative(code, _JUMP, _highest_byte(farthest), spend)


def conditional_jumps(code: memoryview, farthest: int, spend: Spend) -> Iterator[tuple[int, int]]:
    """Yield conditional jumps, as `gilscope.arch.base.Search`; not the short ones."""
    return _relative(code, _CONDITIONAL_JUMP, _highest_byte(farthest), spend)


def slot_branches(code: memoryview, vaddr: int, spend: Spend) -> Iterator[SlotBranch]:
    """Yield calls and jumps through a slot in *code*, which is loaded at *vaddr*."""
    for position, slot in _relative(code, _THROUGH_SLOT, b".", spend):
        is_call = code[position + 1] == _CALL_THROUGH_SLOT
        yield SlotBranch(vaddr + position, vaddr + slot, is_call)


def tail_jump(code: memoryview, end: int) -> tuple[int, int] | None:
    """Return position and target of the short jump that ends at *end*, if there is one.

    Short jumps are too common to be looked for elsewhere: here one is a tail call to a neighbour.
    """
    position = end - _SHORT_LENGTH
    if not 0 <= position <= len(code) - _SHORT_LENGTH or code[position] != _SHORT_JUMP:
        return None
    return position, end + int.from_bytes(code[position + 1 : position + 2], signed=True)


def slot_stubs(code: memoryview, vaddr: int) -> Iterator[tuple[int, int]]:
    """Yield the beginnings of stubs that jump through a slot, and the slot."""
    for match in _JUMP_THROUGH_SLOT.finditer(code):
        start = match.start()
        slot = start + 6 + _distance(code, start + 2)[0]
        for before in (_BND, _ENDBR64):
            if bytes(code[max(start - len(before), 0) : start]) == before:
                start -= len(before)
        yield vaddr + start, vaddr + slot


def address_loads(
    code: memoryview, vaddr: int, addresses: Collection[int], spend: Spend
) -> Iterator[tuple[int, int]]:
    """Yield the instructions that load one of *addresses* relative to their own, and which."""
    base = vaddr + _LOAD_ADDRESS_LENGTH
    for number, match in enumerate(_LOAD_ADDRESS.finditer(code)):
        if not number % MATCHES_AT_ONCE:
            spend(MATCHES_AT_ONCE)
        position = match.start()
        loaded = base + position + _distance(code, position + 3)[0]
        if loaded in addresses:
            yield vaddr + position, loaded


def absolute_loads(
    code: memoryview, vaddr: int, addresses: Collection[int], spend: Spend
) -> Iterator[tuple[int, int]]:
    """Yield the instructions that load one of *addresses* as a constant, and which."""
    immediates = [
        struct.pack("<I", address) for address in addresses if address <= _LARGEST_IMMEDIATE
    ]
    # The upper half of an address tells most of them, in the same time for any number of them.
    upper = (re.escape(bytes({immediate[place] for immediate in immediates})) for place in (2, 3))
    pattern = re.compile(_MOVE_ADDRESS + rb"(?=(..[%s][%s]))" % tuple(upper), re.DOTALL)
    for number, match in enumerate(pattern.finditer(code) if immediates else ()):
        if not number % MATCHES_AT_ONCE:
            spend(MATCHES_AT_ONCE)
        loaded = int.from_bytes(match[1], "little")
        if loaded in addresses:
            yield vaddr + match.start(), loaded


def _highest_byte(farthest: int) -> bytes:
    """Return a regex class for the highest byte of a 32-bit distance that is not farther."""
    top = min(farthest >> 24, 0x7F)
    return b"[\\x00-\\x%02x\\x%02x-\\xff]" % (top, 0xFF - top)


def _relative(
    code: memoryview, opcode: bytes, highest_byte: bytes, spend: Spend
) -> Iterator[tuple[int, int]]:
    """Yield position and target of what looks like an opcode with a 32-bit distance behind it.

    Only the opcode is consumed, so that a branch is found whatever the bytes before it look like.
    """
    pattern = re.compile(opcode + rb"(?=..." + highest_byte + rb")", re.DOTALL)
    for number, match in enumerate(pattern.finditer(code)):
        if not number % MATCHES_AT_ONCE:
            spend(MATCHES_AT_ONCE)
        end = match.end()
        yield match.start(), end + 4 + _distance(code, end)[0]
