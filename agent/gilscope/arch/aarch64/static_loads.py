"""Tells which static memory AArch64 code uses."""

from collections.abc import Iterator

from gilscope.arch.aarch64.words import WORD, is_branch, load_of, page_of, word_at
from gilscope.arch.base import WordUse

__all__ = ["static_load", "word_uses"]


def static_load(code: bytes, vaddr: int) -> int | None:
    """Return where the first word of 8 bytes is that *code* loads from static memory.

    *code* is a function's, which is loaded at *vaddr*. None: none is loaded before the first
    branch, as far as can be told.
    """
    pages: dict[int, int] = {}
    for position in range(0, len(code) - WORD + 1, WORD):
        word = word_at(code, position)
        page, load = page_of(word, vaddr + position), load_of(word)
        if page is not None:
            pages[page[0]] = page[1]
        elif load is not None and load[1] in pages:
            return pages[load[1]] + load[2]
        elif is_branch(word):
            return None
        else:
            # Whatever else has the register in its lowest bits is taken to write it.
            pages.pop(word & 31, None)
    return None


def word_uses(_code: bytes, _vaddr: int) -> Iterator[WordUse]:
    """Yield nothing: how a compiler does what only one processor may do at a time is not known."""
    return iter(())
