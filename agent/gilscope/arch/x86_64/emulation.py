"""Steps over simple x86-64 instructions to one that is cheap to probe."""

from typing import Final

from gilscope.arch.x86_64.length import instruction_length

__all__ = ["STRAIGHT_LINE", "distance_to_emulated", "is_emulated"]

STRAIGHT_LINE: Final = 32
"""Bytes that are read."""

# The kernel emulates these under a uprobe; anything else it has to single-step.
_EMULATED_ONE_BYTE: Final = frozenset(
    {0xE8, 0xE9, 0xEB, 0x90, *range(0x50, 0x58), *range(0x70, 0x80)}
)
_EMULATED_TWO_BYTES: Final = frozenset(range(0x80, 0x90))
_TWO_BYTES: Final = 0x0F

# mov, lea, test, cmp and xor between registers, or between a register and memory.
_WITH_MODRM: Final = frozenset({0x89, 0x8B, 0x8D, 0x85, 0x39, 0x3B, 0x31, 0x33})
_MOV_IMM32: Final = range(0xB8, 0xC0)
_REX: Final = range(0x40, 0x50)
_REX_W: Final = 8


def distance_to_emulated(code: bytes) -> int:
    """Return the bytes to the first instruction that the kernel emulates, 0 for an unknown way.

    Only moves, address computations and comparisons are stepped over: control can't leave the way.
    """
    position = 0
    while position < len(code):
        if _is_emulated(code, position):
            return position
        length = _length(code[position:])
        if length is None:
            return 0
        position += length
    return 0


def is_emulated(code: bytes) -> bool:
    """Return whether the kernel emulates the first instruction of *code* under a uprobe.

    Of what newer kernels have learnt to emulate it is taken that they do not.
    """
    return bool(code) and _is_emulated(code, 0)


def _is_emulated(code: bytes, position: int) -> bool:
    if code[position] == _TWO_BYTES:
        return (
            code[position + 1 : position + 2] != b"" and code[position + 1] in _EMULATED_TWO_BYTES
        )
    return code[position] in _EMULATED_ONE_BYTE


def _length(code: bytes) -> int | None:
    prefix = 1 if code[0] in _REX else 0
    if len(code) < prefix + 2:
        return None
    opcode = code[prefix]
    if opcode in _WITH_MODRM or (opcode in _MOV_IMM32 and not (prefix and code[0] & _REX_W)):
        return instruction_length(code)
    return None
