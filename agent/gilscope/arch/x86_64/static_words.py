"""Finds the instructions by which x86-64 code uses words of static memory, without disassembling.

Every byte is taken for the beginning of an instruction, so that a few finds lie inside others:
whoever asks compares several functions.
"""

import re
import struct
from collections.abc import Iterator
from typing import Final

from gilscope.arch.base import WordAccess, WordUse

__all__ = ["word_uses"]

# Each is followed by a distance from the instruction's end, which may be some bytes behind it.
_RIP: Final = rb"[\x05\x0d\x15\x1d\x25\x2d\x35\x3d]"
_FORMS: Final = (
    # cmpq $0, word
    (WordAccess.TEST, re.compile(rb"\x48\x83\x3d(....)\x00", re.DOTALL)),
    # mov word, reg
    (WordAccess.LOAD, re.compile(rb"[\x48\x4c]\x8b" + _RIP + rb"(....)", re.DOTALL)),
    # lock addq, subq $1, word; lock incq, decq word; lock xadd reg, word
    (WordAccess.ATOMIC_ADD, re.compile(rb"\xf0\x48\x83[\x05\x2d](....)\x01", re.DOTALL)),
    (WordAccess.ATOMIC_ADD, re.compile(rb"\xf0\x48\xff[\x05\x0d](....)", re.DOTALL)),
    (WordAccess.ATOMIC_ADD, re.compile(rb"\xf0[\x48\x4c]\x0f\xc1" + _RIP + rb"(....)", re.DOTALL)),
    # lock cmpxchg reg, word
    (WordAccess.EXCHANGE, re.compile(rb"\xf0[\x48\x4c]\x0f\xb1" + _RIP + rb"(....)", re.DOTALL)),
)


def word_uses(code: bytes, vaddr: int) -> Iterator[WordUse]:
    """Yield the uses of words in *code*, which is loaded at *vaddr*."""
    for access, form in _FORMS:
        for match in form.finditer(code):
            (distance,) = struct.unpack("<i", match[1])
            site, end = vaddr + match.start(), vaddr + match.end()
            yield WordUse(access, site, end, end + distance)
