"""Locks in the memory of the test itself, which is read like that of another process."""

import ctypes
import mmap
import os
import struct
from collections.abc import Callable

from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64

__all__ = ["LockPage", "MakeLocks"]

_APART = 0x100


class LockPage:
    """`locked` of each lock is what the test says."""

    def __init__(self, *locked: int) -> None:
        """Hold as many locks as there are values of *locked*."""
        self._page = mmap.mmap(-1, mmap.PAGESIZE)
        self._held = ctypes.c_char.from_buffer(self._page)
        self._address = ctypes.addressof(self._held)
        self._memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        self.thread_id = os.getpid()
        self.conds = tuple(self._address + _APART * number for number in range(1, len(locked) + 1))
        """Their addresses."""
        for cond, value in zip(self.conds, locked, strict=True):
            self.put(cond, value)

    def fileno(self) -> int:
        """Return the descriptor of the memory."""
        return self._memory

    def put(self, cond: int, locked: int) -> None:
        """Set `locked` of the lock at *cond*."""
        struct.pack_into("<i", self._page, cond + GLIBC_X86_64.locked - self._address, locked)

    def vanish(self) -> None:
        """Have nothing at any address from now on, as the memory of a process that is gone."""
        page = ctypes.c_void_p(self._address), ctypes.c_size_t(mmap.PAGESIZE)
        assert 0 == ctypes.CDLL(None).mprotect(*page, 0)

    def close(self) -> None:
        """Give the memory up."""
        os.close(self._memory)
        del self._held
        self._page.close()


MakeLocks = Callable[..., LockPage]
"""Makes locks with the values that are given; their memory is given up in the end."""
