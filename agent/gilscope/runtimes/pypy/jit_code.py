"""Tells which functions a piece of code that PyPy's JIT has made is of.

PyPy keeps a skip list of all such pieces for its own profiler. Each has a table that says, for an
address in it, which functions have been inlined there: four numbers an entry, the function's own,
where it begins and ends, and where the next entry is.
"""

import struct
from typing import Final

from gilscope.process.remote_read import Memory, TornRead, read_bytes
from gilscope.runtimes.pypy.layout import Place

__all__ = ["JitCode"]

_HEAD: Final = struct.Struct("<10Q")
"""A node of the list: key, data, and eight pointers to following ones."""
_LEVELS: Final = 8
_NEXT: Final = 16
_PIECE: Final = struct.Struct("<IIQ")
"""Bytes of the piece, numbers in its table, and the table."""
_DATA_BEHIND: Final = range(24, 81, 8)
"""Where a node's data are, from the node: behind as many pointers as it has levels."""
_LARGEST_PIECE: Final = 1 << 24
_LARGEST_TABLE: Final = 1 << 16
_MOST_STEPS: Final = 20_000
_ENTRY: Final = 4
_PAGE: Final = 4096


class JitCode:
    """The pieces of one process."""

    def __init__(self, memory: Memory, place: Place) -> None:
        self._memory = memory
        self._place = place
        self._head = 0

    def numbers_at(self, address: int) -> tuple[int, ...]:
        """Return the numbers of the code at *address*, innermost first; none: it is no such code.

        Raises TornRead or OSError.
        """
        self._head = self._head or self._find_head()
        if not self._head:
            return ()
        node = self._last_before(address)
        if node == self._head:
            return ()
        key, data = struct.unpack("<2Q", read_bytes(self._memory, node, 16))
        size, count, table = _PIECE.unpack(read_bytes(self._memory, data, _PIECE.size))
        offset = address - key
        if offset >= size or count > _LARGEST_TABLE:
            return ()
        numbers = struct.unpack(f"<{count}q", read_bytes(self._memory, table, 8 * count))
        return _inlined_at(numbers, offset)

    def _last_before(self, address: int) -> int:
        """Return the node with the largest key up to *address*."""
        node, level = self._head, _LEVELS - 1
        for _ in range(_MOST_STEPS):
            pointer = read_bytes(self._memory, node + _NEXT + 8 * level, 8)
            following = int.from_bytes(pointer, "little")
            if following and self._word(following) <= address:
                node = following
            elif level == 0:
                return node
            else:
                level -= 1
        raise TornRead("the list of code made by the JIT does not end")

    def _word(self, address: int) -> int:
        return int.from_bytes(read_bytes(self._memory, address, 8), "little")

    def _find_head(self) -> int:
        """Return the address of the first node: it has no key, and leads to one of a piece."""
        start, size = self._place.address("bss"), self._place.facts["bss.size"]
        words = read_bytes(self._memory, start, size // 8 * 8)
        nothing = bytes(16)
        at = words.find(nothing)
        while 0 <= at <= len(words) - _HEAD.size:
            if at % 8:
                at += 8 - at % 8
            if words[at : at + 16] == nothing and self._is_head(_HEAD.unpack_from(words, at)):
                return start + at
            at = words.find(nothing, at + 8)
        return 0

    def _is_head(self, words: tuple[int, ...]) -> bool:
        first = words[2]
        if first < _PAGE or first % 8 or first >> 47:
            return False
        try:
            key, data = struct.unpack("<2Q", read_bytes(self._memory, first, 16))
            if data - first not in _DATA_BEHIND or not key:
                return False
            size, count, _ = _PIECE.unpack(read_bytes(self._memory, data, _PIECE.size))
        except (TornRead, OSError):
            return False
        return bool(0 < size < _LARGEST_PIECE and count <= _LARGEST_TABLE)


def _inlined_at(numbers: tuple[int, ...], offset: int) -> tuple[int, ...]:
    found = []
    at = 0
    while at >= 0 and at + _ENTRY - 1 < len(numbers):
        number, begin, end, following = numbers[at : at + _ENTRY]
        if begin > offset:
            break
        if end > offset:
            found.append(number)
            at += _ENTRY
        elif following > at:
            at = following
        else:
            break
    return tuple(reversed(found))
