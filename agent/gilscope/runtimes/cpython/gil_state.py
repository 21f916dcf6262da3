"""Reads the locks of a process in its memory."""

import struct

from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.process.remote_read import (
    Memory,
    TornRead,
    read_bytes,
    read_int,
)
from gilscope.runtimes.cpython.gil_struct import GilStruct
from gilscope.runtimes.cpython.threads import ThreadFinder

__all__ = ["LockMemory", "holder_now"]

_TRIES = 8


def holder_now(memory: Memory, struct_: GilStruct, cond: int) -> tuple[int, int] | None:
    """Return the thread state that holds the lock at *cond*, and how often holders have changed.

    None: nobody holds it. Raises as `read_bytes` does.
    """
    if struct_.is_scattered:
        return _scattered_holder(memory, struct_, cond)
    first = struct_.last_holder
    content = read_bytes(memory, cond + first, struct_.switch_number + 8 - first)
    (tstate,) = struct.unpack_from("<Q", content)
    (locked,) = struct.unpack_from("<i", content, struct_.locked - first)
    (switch_number,) = struct.unpack_from("<Q", content, struct_.switch_number - first)
    return (tstate, switch_number) if locked == 1 else None


def _scattered_holder(memory: Memory, struct_: GilStruct, cond: int) -> tuple[int, int] | None:
    # One read for each variable: what changes meanwhile is read again.
    number = read_int(memory, cond + struct_.switch_number, 8)
    for _ in range(_TRIES):
        tstate = read_int(memory, cond + struct_.last_holder, 8)
        locked = read_int(memory, cond + struct_.locked, 4)
        before, number = number, read_int(memory, cond + struct_.switch_number, 8)
        if number == before:
            return (tstate, number) if locked == 1 else None
    raise TornRead(f"the lock at {cond:#x} changes hands all the time")


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
