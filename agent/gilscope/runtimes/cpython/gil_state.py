"""Reads the locks of a process in its memory."""

from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.runtimes.cpython.gil_struct import GilStruct
from gilscope.runtimes.cpython.threads import ThreadFinder

__all__ = ["LockMemory"]


class LockMemory:
    """The locks of one process, as their own fields show them."""

    def __init__(
        self, memory: ProcessMemory, struct: GilStruct, threads: ThreadFinder, reads: Reads
    ) -> None:
        self._memory = memory
        self._struct = struct
        self._reads = reads
        self._threads = threads

    def is_locked(self, cond: int) -> bool | None:
        """Return whether the lock is held now; None where it cannot be read."""
        try:
            content = self._reads(lambda: self._memory.read(cond + self._struct.locked, 4))
        except OSError:
            return None
        return int.from_bytes(content, "little", signed=True) == 1

    def holder_tid(self, cond: int) -> int | None:
        """Return the thread that holds the lock, or held it last; None if it cannot be told."""
        try:
            return self._reads(lambda: self._holder_tid(cond))
        except OSError:
            return None

    def _holder_tid(self, cond: int) -> int | None:
        content = self._memory.read(cond + self._struct.last_holder, 8)
        tstate = int.from_bytes(content, "little")
        return self._threads.tid_of(tstate) if tstate else None
