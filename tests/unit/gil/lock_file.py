"""Locks in a file that is read like the memory of a process, and says when that happens."""

import ctypes
import os
import select
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile

__all__ = ["LockFile", "MakeLocks"]

_ACCESS = 0x1
_EVENTS = 1 << 12
_WITHIN_MS = 30_000

_libc = ctypes.CDLL(None, use_errno=True)


class LockFile:
    """`locked` of each lock is what the test says, and every read that gets something is noted."""

    def __init__(self, folder: Path, locked: Mapping[int, int]) -> None:
        """Hold the locks of *locked*, by address of ``cond``."""
        self._file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - until `close`
        for cond, value in locked.items():
            self.put(cond, value)
        self._accesses = _libc.inotify_init1(os.O_NONBLOCK)
        name = f"/proc/self/fd/{self.fileno()}".encode()
        assert 0 < _libc.inotify_add_watch(self._accesses, name, _ACCESS)

    def fileno(self) -> int:
        """Return the descriptor of the file."""
        return self._file.fileno()

    def put(self, cond: int, locked: int) -> None:
        """Set `locked` of the lock at *cond*."""
        os.pwrite(self.fileno(), struct.pack("<i", locked), cond - 16)

    def vanish(self) -> None:
        """Have nothing at any address from now on, as the memory of a process that is gone."""
        self._file.truncate(0)

    def was_read(self) -> bool:
        """Return whether something has been read since this was asked, or `await_look` ended."""
        try:
            return bool(os.read(self._accesses, _EVENTS))
        except BlockingIOError:
            return False

    def await_look(self) -> None:
        """Return after the next one that has not yet begun."""
        # One may be going on now.
        for _ in range(2):
            self.was_read()
            poll = select.poll()
            poll.register(self._accesses, select.POLLIN)
            assert poll.poll(_WITHIN_MS)
        self.was_read()

    def close(self) -> None:
        """Give the file up."""
        self._file.close()
        os.close(self._accesses)


MakeLocks = Callable[[dict[int, int]], LockFile]
"""Makes a file with the locks that are given; it is closed in the end."""
