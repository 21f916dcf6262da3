"""Tells who owns a mutex of glibc, by what it has in memory."""

import contextlib
import os
import struct
from pathlib import Path
from typing import Self

from gilscope.process.memory import ProcessMemory

__all__ = ["MutexMemory", "owner_of"]

# struct __pthread_mutex_s (sysdeps/x86/nptl/bits/struct_mutex.h): the lock word, how often its
# owner has locked it, the owner's tid, how many threads use it, and its kind.
_MUTEX = struct.Struct("<iIiIi")
_CONTENDED = 2
_HIGHEST_KIND = 3
"""PTHREAD_MUTEX_ADAPTIVE_NP; robust ones and those with priorities have more bits."""
_PAGE = 4096
_PRESENT, _OF_FILE = 1 << 63, 1 << 61


def owner_of(content: bytes) -> int | None:
    """Return the owner in the *content* of a mutex that somebody waits for.

    It is the thread's number in its own pid namespace; None: this is no mutex that has one.
    """
    lock, _, owner, users, kind = _MUTEX.unpack(content)
    is_mutex = lock == _CONTENDED and users >= 1 and 0 <= kind <= _HIGHEST_KIND
    return owner if is_mutex and owner > 0 else None


class MutexMemory:
    """Reads mutexes wherever a process has them, but no page that somebody would have to deliver.

    A library keeps them beside its data, in a private copy of a page of its file. What the kernel
    says is in memory, and no file's any more, is read.
    """

    def __init__(self, pid: int, *, proc: Path = Path("/proc")) -> None:
        """Open the memory of *pid*; raises OSError."""
        with contextlib.ExitStack() as undo:
            self._memory = undo.enter_context(ProcessMemory(pid, proc=proc))
            self._pages = os.open(proc / str(pid) / "pagemap", os.O_RDONLY | os.O_CLOEXEC)
            undo.pop_all()

    def owner(self, address: int) -> int | None:
        """Return what `owner_of` does for the mutex at *address*, None where it is not read."""
        last = address + _MUTEX.size - 1
        try:
            if all(self._is_own(page) for page in {address // _PAGE, last // _PAGE}):
                return owner_of(self._memory.read(address, _MUTEX.size))
        except OSError:
            pass
        return None

    def _is_own(self, page: int) -> bool:
        entry = int.from_bytes(os.pread(self._pages, 8, page * 8), "little")
        return bool(entry & _PRESENT) and not entry & _OF_FILE

    def close(self) -> None:
        """Close what was opened."""
        os.close(self._pages)
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
