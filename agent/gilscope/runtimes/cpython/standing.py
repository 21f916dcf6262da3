"""Reads, from outside and without stopping them, where all threads stand and who holds each GIL."""

from collections.abc import Mapping
from functools import partial

from gilscope.model.gil import Gil
from gilscope.model.moment.seen import LockNow, ThreadStack
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.process.remote_read import TornRead, read_pointer
from gilscope.runtimes.cpython.gil_state import holder_now
from gilscope.runtimes.cpython.runtime import Runtime, read_gils
from gilscope.runtimes.cpython.stack_walk import StackWalk
from gilscope.runtimes.cpython.threads import ThreadFinder
from gilscope.runtimes.torn_stacks import settled

__all__ = ["StandingReader"]

_DEEPEST = 1000
"""Frames of a stack that are read; who asks wants all of them, and a recursion is told by fewer."""


class StandingReader:
    """All threads of one process at one moment. Names of code are its own: one thread may use it.

    All of it raises OSError where the process is not read any more, and TornRead where its lists
    of threads or interpreters make no sense.
    """

    def __init__(
        self, memory: ProcessMemory, runtime: Runtime, threads: ThreadFinder, reads: Reads
    ) -> None:
        self._memory = memory
        self._runtime = runtime
        self._threads = threads
        self._reads = reads
        self._walk = StackWalk(memory, runtime, _DEEPEST)

    def stacks(self, most: int) -> list[ThreadStack]:
        """Return where threads stand in each interpreter, of *most* at the most."""
        by_tid = self._reads(self._threads.all_by_tid)
        # One at a time: a thousand of them are more than may be read at once.
        return [
            ThreadStack(
                tid,
                thread.interpreter_id,
                self._reads(partial(settled, partial(self._walk.stack, thread.tstate))),
                self._reads(partial(self._descriptor, thread.tstate)),
            )
            for tid, thread in by_tid[:most]
        ]

    def locks(self) -> list[LockNow]:
        """Return every GIL and who holds it now."""
        return self._reads(self._locks)

    def tids_by_own_id(self) -> Mapping[int, int]:
        """Return the threads, as the agent sees tids, by what the process itself calls them."""
        return self._threads.tids_by_own_id()

    def _descriptor(self, tstate: int) -> int:
        try:
            return read_pointer(self._memory, tstate + self._runtime.layout.thread_id)
        except TornRead:
            return 0  # the thread has just ended

    def _locks(self) -> list[LockNow]:
        gils = read_gils(self._runtime)
        holders = {gil.cond: self._holder(gil) for gil in gils}
        # Behind the locks: a thread may have been started since the list was read.
        tids = {thread.tstate: tid for tid, thread in self._threads.all_by_tid()}
        pthread = self._runtime.layout.pthread
        struct_ = self._runtime.layout.gil_struct
        size = struct_.switch_cond + pthread.cond_size + pthread.mutex_size
        if struct_.is_scattered:
            size = pthread.cond_size
        return [
            LockNow(
                gil,
                is_held=holders[gil.cond] is not None,
                holder_tid=tids.get(holders[gil.cond] or 0),
                first=gil.cond,
                last=gil.cond + size,
            )
            for gil in gils
        ]

    def _holder(self, gil: Gil) -> int | None:
        """Return the thread state of the holder, None where nobody holds the lock."""
        holder = holder_now(self._memory, self._runtime.layout.gil_struct, gil.cond)
        return None if holder is None else holder[0]
