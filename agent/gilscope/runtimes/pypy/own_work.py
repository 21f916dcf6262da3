"""Tells what PyPy does for itself, while a thread holds the GIL: it collects garbage, or compiles.

It notes both for its own logs, which it need not write for that; where, `sites.work_facts` has
found. The notes are of the process, and whoever holds the GIL makes them. The collector never
releases the GIL. The JIT may, where it traces a call that does: then another thread holds the GIL,
and the loop that is being traced has a mark in its frame until the call has returned. So the holder
compiles if more loops are being traced than have the mark.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final

from gilscope.process.remote_read import Memory, TornRead, read_bytes, read_pointer
from gilscope.runtimes.pypy.layout import Place
from gilscope.runtimes.pypy.stacks import frame_addresses
from gilscope.runtimes.pypy.threads import PyPyThread

__all__ = ["OwnWork", "read_own_work"]

_LIST_LENGTH, _LIST_ITEMS = 8, 16
_ITEMS_BEGIN: Final = 16
_TRACING, _BACKEND = 0, 1
"""What the JIT is about (rpython.rlib.jit.Counters)."""
_MOST_AT_ONCE: Final = 64
"""Loops that are traced at the same time, each in a call that the one before has made."""
_MOST_FRAMES: Final = 1000
_WORD_BITS: Final = 64


class OwnWork(Enum):
    """What the runtime does for the code that it runs."""

    NONE = "none"
    COLLECTION = "collection"
    COMPILATION = "compilation"


def read_own_work(memory: Memory, place: Place, threads: Iterable[PyPyThread]) -> OwnWork:
    """Return what the holder of the GIL, one of *threads*, does besides to run code.

    `NONE` too where the file has not told where that is noted. Raises TornRead or OSError.
    """
    if not place.facts.knows_own_work:
        return OwnWork.NONE
    sections = _depth(int.from_bytes(read_bytes(memory, place.address("sections"), 8), "little"))
    about = _about(memory, place)
    if about and about[-1] == _BACKEND:
        return OwnWork.COMPILATION
    traced = about.count(_TRACING)
    if traced and _is_traced(memory, place, threads, traced):
        return OwnWork.COMPILATION
    # Each loop that is traced is a section too.
    return OwnWork.COLLECTION if sections > traced else OwnWork.NONE


def _depth(word: int) -> int:
    """Return how many sections the word is in: each has shifted a 0 into it.

    With PYPYLOG those that are logged have a 1 instead, and it is at most as many.
    """
    return (word & -word).bit_length() - 1 if word else _WORD_BITS


def _about(memory: Memory, place: Place) -> list[int]:
    """Return what the JIT is about, each within the one before."""
    current = read_pointer(memory, place.address("jit.current"))
    if not current:
        return []
    length = int.from_bytes(read_bytes(memory, current + _LIST_LENGTH, 8), "little")
    if length > _MOST_AT_ONCE:
        raise TornRead(f"the JIT traces {length} loops at once")
    if not length:
        return []
    items = read_pointer(memory, current + _LIST_ITEMS)
    content = read_bytes(memory, items + _ITEMS_BEGIN, 8 * length)
    found = [int.from_bytes(content[at : at + 8], "little") for at in range(0, len(content), 8)]
    if not {_TRACING, _BACKEND}.issuperset(found):
        raise TornRead(f"the JIT is about {found}")
    return found


def _is_traced(memory: Memory, place: Place, threads: Iterable[PyPyThread], traced: int) -> bool:
    """Return whether one of the *traced* loops is followed now, and is not in a call of its own."""
    mark = place.address("jit.mark")
    token = place.facts["frame.token"]
    for thread in threads:
        for frame in frame_addresses(memory, place, thread, _MOST_FRAMES):
            if read_pointer(memory, frame + token) == mark:
                traced -= 1
                if not traced:
                    return False
    return True
