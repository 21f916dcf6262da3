"""Memory of a process as of about one moment: each page is read once, and whole."""

from gilscope.process.remote_read import Memory

__all__ = ["Snapshot"]

_PAGE = 4096


class Snapshot:
    """Pages of *memory*, each as it was when something in it was asked for first.

    What lies close together is of one instant then, and costs one system call. To be used once.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._pages: dict[int, bytes] = {}

    def read(self, address: int, size: int) -> bytes:
        """Return exactly *size* bytes; raises OSError as *memory* does."""
        first, last = address // _PAGE, (address + size - 1) // _PAGE
        content = b"".join(map(self._page, range(first, last + 1)))
        begin = address - first * _PAGE
        return content[begin : begin + size]

    def _page(self, number: int) -> bytes:
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = self._memory.read(number * _PAGE, _PAGE)
        return page
