"""Reads, from outside and without stopping it, where the thread is that holds a GIL."""

import struct
from dataclasses import replace

from gilscope.model.stack import UNKNOWN_FRAME, Stack, StackState
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.process.remote_read import TornRead, read_bytes
from gilscope.process.snapshot import Snapshot
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.runtimes.cpython.code.frames import innermost_places
from gilscope.runtimes.cpython.runtime import Runtime

__all__ = ["HolderReader"]

_DEEPEST = 128
"""Frames that are read; more of them cost more than they tell."""
_TRIES = 8
"""A generator is entered and left within a microsecond: the next try finds it inside."""
_TORN = Stack((), StackState.TORN)
_NO_PYTHON = Stack((), StackState.NO_PYTHON)


class HolderReader:
    """The holders of one process' locks. Has names of code of its own: one thread may use it.

    The holder runs on meanwhile. Frames lie close together and are read a page at a time, so that
    a stack is of about one instant; a chain that does not end where a thread begins, or leads to
    what is no code object, is read again and, in the end, reported as torn.
    """

    def __init__(self, memory: ProcessMemory, runtime: Runtime, reads: Reads) -> None:
        self._memory = memory
        self._runtime = runtime
        self._reads = reads
        self._code = CodeReader(runtime)

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
                stack = self._walk(holder)
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

    def _walk(self, tstate: int) -> Stack:
        runtime = replace(self._runtime, memory=Snapshot(self._memory))
        places, is_whole = innermost_places(runtime, tstate, _DEEPEST)
        if not places:
            return _NO_PYTHON
        frames = self._code.current_frames(places)
        if UNKNOWN_FRAME in frames:
            raise TornRead("a frame without code")
        return Stack(frames, StackState.WHOLE if is_whole else StackState.CUT)
