"""Which static variables x86-64 code reads, writes and passes on, from its instructions.

Only what a compiler makes of C for a variable with a fixed address: an operand relative to the
instruction, or an address that is put into a register.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from gilscope.arch.x86_64.length import instruction_length

__all__ = ["ARGUMENT", "Access", "Call", "accesses", "calls_with_argument"]

ARGUMENT: Final = 7
"""The register with a function's first argument, rdi."""

_PREFIXES: Final = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")
_REX: Final = range(0x40, 0x50)
_REX_W, _REX_R, _REX_B = 8, 4, 1
_RELATIVE: Final = 5  # the r/m field of a ModRM byte, with a mode of 0 (memory) or 3 (rbp)
_ADDRESS_BYTES: Final = 4
_OF_REGISTERS: Final = 0xC0  # from this ModRM byte on, both operands are registers
_CALL, _JUMP, _SLOT = 0xE8, 0xE9, 0xFF
_MOV_IMMEDIATE: Final = range(0xB8, 0xC0)
_CLOBBERED: Final = frozenset((0, 1, 2, 6, 7, 8, 9, 10, 11))
"""Registers that a call may change."""


class Access(NamedTuple):
    """One instruction with an operand at a fixed address."""

    opcode: int
    register: int
    """The other operand, or what more there is of the opcode."""
    is_wide: bool
    """Of 64 bits."""
    address: int
    immediate: int | None
    """Written, added or compared; None without one."""


class Call(NamedTuple):
    """One direct call, or jump that is as good as one, or a call through a slot."""

    site: int
    target: int
    is_slot: bool
    """*target* is where the address is that is called."""
    argument: int | None
    """The first argument where it is an address that was put into its register just before."""


class _Instruction(NamedTuple):
    vaddr: int
    rex: int
    opcode: int
    rest: bytes
    """Behind the opcode."""
    end: int


def accesses(code: bytes, vaddr: int) -> Iterator[Access]:
    """Yield what accesses static variables in a function's *code*, which is loaded at *vaddr*."""
    for each in _instructions(code, vaddr):
        mode_and_rm = each.rest[0] & 0xC7 if each.rest else 0
        if (
            mode_and_rm == _RELATIVE
            and each.opcode in _WITH_OPERAND
            and len(each.rest) > _ADDRESS_BYTES
        ):
            size = len(each.rest) - 1 - _ADDRESS_BYTES
            immediate = int.from_bytes(each.rest[5:], "little", signed=True) if size else None
            yield Access(
                each.opcode,
                _register(each),
                bool(each.rex & _REX_W),
                _relative(each),
                immediate,
            )


def calls_with_argument(code: bytes, vaddr: int) -> Iterator[Call]:
    """Yield the calls in a function's *code*, with the static address that is the argument of each.

    Registers are followed from one instruction to the next, as they stand in memory.
    """
    known: dict[int, int] = {}
    for each in _instructions(code, vaddr):
        if each.opcode in {_CALL, _JUMP} and len(each.rest) == _ADDRESS_BYTES:
            target = each.end + int.from_bytes(each.rest, "little", signed=True)
            yield Call(each.vaddr, target, is_slot=False, argument=known.get(ARGUMENT))
        elif each.opcode == _SLOT and each.rest[:1] == b"\x15":
            yield Call(each.vaddr, _relative(each), is_slot=True, argument=known.get(ARGUMENT))
        else:
            _follow(known, each)
            continue
        for register in _CLOBBERED:
            known.pop(register, None)


_LEA, _LOAD, _STORE, _STORE_IMMEDIATE = 0x8D, 0x8B, 0x89, 0xC7
_WITH_OPERAND: Final = frozenset(
    (0x01, 0x03, 0x0B, 0x39, 0x3B, 0x81, 0x83, 0x85, 0x87, _STORE, _LOAD, _STORE_IMMEDIATE, _SLOT)
)
_WRITES_REGISTER: Final = frozenset((0x03, 0x0B, 0x23, 0x2B, 0x33, 0x63, _LOAD, _LEA))


def _follow(known: dict[int, int], each: _Instruction) -> None:
    """Take note of what an instruction does to the addresses that are in registers."""
    if each.opcode in _MOV_IMMEDIATE:
        register = each.opcode & 7 | (each.rex & _REX_B) << 3
        known[register] = int.from_bytes(each.rest, "little")
    elif not each.rest:
        return
    elif each.opcode == _LEA and each.rest[0] & 0xC7 == _RELATIVE:
        known[_register(each)] = _relative(each)
    elif each.opcode in {_STORE, _LOAD} and each.rest[0] >= _OF_REGISTERS:
        operand = each.rest[0] & 7 | (each.rex & _REX_B) << 3
        source, to = (_register(each), operand)[:: 1 if each.opcode == _STORE else -1]
        if each.rex & _REX_W and source in known:
            known[to] = known[source]
        else:
            known.pop(to, None)
    elif each.opcode in _WRITES_REGISTER:
        known.pop(_register(each), None)


def _register(each: _Instruction) -> int:
    return each.rest[0] >> 3 & 7 | (each.rex & _REX_R) << 1


def _relative(each: _Instruction) -> int:
    return each.end + int.from_bytes(each.rest[1:5], "little", signed=True)


def _instructions(code: bytes, vaddr: int) -> Iterator[_Instruction]:
    """Yield those with an opcode of one byte, up to the first that is not known."""
    at = 0
    while at < len(code):
        length = instruction_length(code, at)
        if length is None:
            return
        start, end = at, at + length
        rex = 0
        while at < end and code[at] in _PREFIXES:
            at += 1
        if at < end and code[at] in _REX:
            rex = code[at]
            at += 1
        if at < end:
            yield _Instruction(vaddr + start, rex, code[at], code[at + 1 : end], vaddr + end)
        at = end
