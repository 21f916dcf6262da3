"""Finds where x86-64 code decides on whether an atomic exchange has written."""

import re
from collections.abc import Iterator
from typing import Final

from gilscope.arch.base import Exchange

__all__ = ["exchanges"]

# Where it is so, je or jne, short, and lea disp8(reg64), reg64; lock cmpxchg reg64, (reg64); moves
# between registers, which leave the flags alone; je or jne.
_FORM: Final = re.compile(
    rb"(?:([\x74\x75])[\x00-\xff][\x48\x4c]\x8d[\x48-\x4b\x50-\x53][\x00-\xff])?\xf0[\x48\x4c]\x0f\xb1([\x00-\x3f])(?:[\x40-\x4f]?[\x89\x8b][\xc0-\xff]){0,2}"
    rb"(?=[\x74\x75]|\x0f[\x84\x85])"
)
_OPCODE: Final = 4
"""Bytes of an exchange before the one that has the registers."""
_REGISTER: Final = 7
_OTHER_ADDRESSES: Final = (4, 5)
"""In place of a register: of several registers, and relative to the instruction."""


def exchanges(code: bytes) -> Iterator[Exchange]:
    """Yield the exchanges of 64 bits in *code* at an address that is in a register."""
    for match in _FORM.finditer(code):
        register = match[2][0] & _REGISTER
        if register not in _OTHER_ADDRESSES:
            before = match.start(1) if match[1] else None
            yield Exchange(before, match.start(2) - _OPCODE, match.end(), register)
