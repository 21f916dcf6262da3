"""Reads, from outside and without stopping it, where the thread is that holds a GIL."""

import struct

from gilscope.model.stack import Stack, StackState
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.process.remote_read import TornRead, read_bytes
from gilscope.runtimes.cpython.runtime import Runtime
from gilscope.runtimes.cpython.stack_walk import StackWalk

__all__ = ["HolderReader"]

_DEEPEST = 128
"""Frames that are read; more of them cost more than they tell."""
_TRIES = 8
"""A generator is entered and left within a microsecond: the next try finds it inside."""
_TORN = Stack((), StackState.TORN)


class HolderReader:
    """The holders of one process' locks. Has names of code of its own: one thread may use it.

    The holder runs on meanwhile. What could not be read as a whole is read again and, in the end,
    reported as torn.
    """

    def __init__(self, memory: ProcessMemory, runtime: Runtime, reads: Reads) -> None:
        self._memory = memory
        self._runtime = runtime
        self._reads = reads
        self._walk = StackWalk(memory, runtime, _DEEPEST)

    def stack(self, cond: int) -> Stack | None:
        """Return the stack of the thread that holds the lock at *cond*; None: nobody does.

        Raises OSError where the process is not read any more.
        """
        return self._reads(lambda: self._stack(cond))

    def _stack(self, cond: int) -> Stack | None:
        for _ in range(_TRIES):
            try:
                holder = self._holder(cond)
                if holder is None:
                    return None
                stack = self._walk.stack(holder)
                if self._holder(cond) == holder:
                    return stack
            except TornRead:
                continue
        return _TORN

    def _holder(self, cond: int) -> int | None:
        """Return the thread state of the holder, None where nobody holds the lock."""
        gil = self._runtime.layout.gil_struct
        content = read_bytes(self._memory, cond + gil.last_holder, gil.locked + 4 - gil.last_holder)
        tstate, locked = struct.unpack_from(f"<Q{gil.locked - gil.last_holder - 8}xi", content)
        return int(tstate) if locked == 1 else None
