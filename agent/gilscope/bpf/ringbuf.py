"""Reads a BPF ring buffer without a library: records that the kernel hands over in order.

What is mapped (kernel/bpf/ringbuf.c, Linux 5.8): one page with the consumer's position, which is
the only thing written here; then read-only one page with the producer's position and the records,
mapped twice in a row, so that a record that runs over the end can be read in one piece. Positions
are bytes since the map was made and only grow. A record is a header of 8 bytes (its length with
two flags, and a number that is of no use here) and its content, padded to 8 bytes.
"""

import mmap
import os
from collections.abc import Iterator
from typing import Any

from gilscope.bpf.info import map_statistics
from gilscope.bpf.map import RecordLayout

__all__ = ["Ring"]

_HEADER_SIZE = 8
_ALIGNMENT = 8
# BPF_RINGBUF_BUSY_BIT: still being written; BPF_RINGBUF_DISCARD_BIT: to be skipped.
_BUSY = 1 << 31
_DISCARDED = 1 << 30


class Ring:
    """A ring buffer map in the kernel, with one reader. Owns its descriptor."""

    # Order matters between what is loaded and stored here and what the kernel does at the same
    # time: position before header before content, and all of it before the position that is given
    # back. On x86-64 loads stay in order and so do stores after loads; an item of a memoryview of
    # 4 or 8 bytes is loaded or stored at once. Elsewhere this would need barriers.

    def __init__(self, name: str, fd: int, value: RecordLayout) -> None:
        """Map the ring; raises OSError, and leaves *fd* open then.

        Every record must have the size of *value*.
        """
        self.name = name
        self._fd = fd
        self._value = value
        # A power of two and a multiple of the page size, or the kernel would not have made it.
        self._size = map_statistics(fd).max_entries
        page = mmap.PAGESIZE
        self._consumer_page = mmap.mmap(fd, page, mmap.MAP_SHARED)
        try:
            self._producer_pages = mmap.mmap(
                fd, page + 2 * self._size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page
            )
        except OSError:
            self._consumer_page.close()
            raise
        self._consumed = memoryview(self._consumer_page).cast("Q")
        self._produced = memoryview(self._producer_pages).cast("Q")
        self._headers = memoryview(self._producer_pages).cast("I")

    def fileno(self) -> int:
        """Return the descriptor, which polls as readable while anything is in the ring.

        Level-triggered only: an edge can be missed, because the kernel wakes a sleeper just for a
        record that finds the ring empty.
        """
        return self._fd

    def drain(self) -> Iterator[dict[str, Any]]:
        """Take and yield what is in the ring now, oldest first.

        A record that is still being written ends it: that one and those after it come next time.
        """
        end = self._produced[0]
        while (position := self._consumed[0]) < end:
            begin = mmap.PAGESIZE + (position & (self._size - 1))
            header = self._headers[begin // 4]
            if header & _BUSY:
                return
            length = header & ~_DISCARDED
            content = begin + _HEADER_SIZE
            raw = self._producer_pages[content : content + length]
            # From here on the kernel may write over it.
            self._consumed[0] = position + _padded(_HEADER_SIZE + length)
            if not header & _DISCARDED:
                yield self._value.unpack(raw)

    def close(self) -> None:
        """Unmap the ring and give up the descriptor."""
        for view in (self._consumed, self._produced, self._headers):
            view.release()
        self._consumer_page.close()
        self._producer_pages.close()
        os.close(self._fd)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
