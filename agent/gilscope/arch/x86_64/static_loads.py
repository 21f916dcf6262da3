"""Tells which static pointer a function begins by loading."""

from typing import Final

from gilscope.arch.x86_64.length import instruction_length

__all__ = ["static_load"]

_REX_W: Final = 8
_REX: Final = range(0x40, 0x50)
_MOV: Final = 0x8B
_COMPARE_BYTE: Final = 0x83
_RELATIVE: Final = 0b00_000_101
_MODE_AND_BASE: Final = 0b11_000_111
_DISTANCE_AT: Final = 3


def static_load(code: bytes, vaddr: int) -> int | None:
    """Return where the first word of 8 bytes is that *code* loads from static memory.

    *code* is a function's, which is loaded at *vaddr*. A comparison with the word counts as a load
    of it. None: none is loaded in what can be read of *code*.
    """
    position = 0
    while (length := instruction_length(code, position)) is not None:
        end = position + length
        if end > len(code):
            return None
        prefix, opcode, modrm = code[position : position + _DISTANCE_AT].ljust(3, b"\0")
        is_word = prefix in _REX and prefix & _REX_W
        if is_word and opcode in (_MOV, _COMPARE_BYTE) and modrm & _MODE_AND_BASE == _RELATIVE:
            at = position + _DISTANCE_AT
            return vaddr + end + int.from_bytes(code[at : at + 4], "little", signed=True)
        position = end
    return None
