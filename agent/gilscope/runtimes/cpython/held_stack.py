"""Reads, from outside and without stopping it, what the thread does that holds a GIL."""

from gilscope.model.stack import Stack, StackState
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.process.remote_read import TornRead, read_int, read_pointer
from gilscope.runtimes.base import HolderSample
from gilscope.runtimes.cpython.gil_state import holder_now
from gilscope.runtimes.cpython.runtime import Runtime
from gilscope.runtimes.cpython.stack_walk import StackWalk
from gilscope.runtimes.cpython.threads import ThreadFinder

__all__ = ["HolderReader"]

_DEEPEST = 128
"""Frames that are read; more of them cost more than they tell."""
_TRIES = 8
"""A generator is entered and left within a microsecond: the next try finds it inside."""
_TORN = Stack((), StackState.TORN)
_MOST_THREADS = 4096


class HolderReader:
    """The holders of one process' locks. Has names of code of its own: one thread may use it.

    The holder runs on meanwhile. What could not be read as a whole is read again and, in the end,
    reported as torn.
    """

    def __init__(
        self, memory: ProcessMemory, runtime: Runtime, threads: ThreadFinder, reads: Reads
    ) -> None:
        self._memory = memory
        self._runtime = runtime
        self._threads = threads
        self._reads = reads.direct
        self._handed = reads
        self._walk = StackWalk(memory, runtime, _DEEPEST)
        self._tids: dict[int, tuple[int, int | None]] = {}
        """By thread state: what the interpreter knows the thread by, and its tid."""

    def sample(self, cond: int) -> HolderSample | None:
        """Return what holds the lock at *cond*; None: nobody does.

        Raises OSError where the process is not read any more.
        """
        return self._reads(lambda: self._sample(cond))

    def is_held_by(self, cond: int, sample: HolderSample) -> bool:
        """Return whether the thread of *sample* holds the lock now; raises OSError likewise."""
        try:
            holder = self._reads(lambda: self._holder(cond))
        except TornRead:
            return False  # its interpreter has just ended
        return holder == (sample.thread, sample.switch_number)

    def is_part_of(self, cond: int, address: int) -> bool:  # noqa: ARG002 - as every runtime has it
        """Return False: who waits for a GIL has said before that nobody holds it."""
        return False

    def _sample(self, cond: int) -> HolderSample | None:
        for _ in range(_TRIES):
            try:
                holder = self._holder(cond)
                if holder is None:
                    return None
                sample = self._standing(*holder)
                if self._holder(cond) == holder:
                    return sample
            except TornRead:
                continue
        return HolderSample(_TORN, None, 0, 0, 0, is_collecting=False)

    def _holder(self, cond: int) -> tuple[int, int] | None:
        return holder_now(self._memory, self._runtime.layout.gil_struct, cond)

    def _standing(self, tstate: int, switch_number: int) -> HolderSample:
        collection = self._collection(tstate)
        stack, position = self._walk.stack_and_position(tstate)
        if self._collection(tstate) != collection:
            # It began or ended while the stack was read, which may be of either side.
            raise TornRead
        is_collecting, generation = collection
        return HolderSample(
            stack,
            self._tid(tstate),
            tstate,
            switch_number,
            position,
            is_collecting=is_collecting,
            generation=generation,
        )

    def _collection(self, tstate: int) -> tuple[bool, int | None]:
        """Return whether the thread's interpreter collects garbage, and which generation."""
        layout = self._runtime.layout
        if layout.gc_collecting is None:
            return False, None
        owner = self._runtime.address
        if not layout.gc_in_runtime:
            owner = read_pointer(self._memory, tstate + layout.tstate_interpreter)
        collecting = owner + layout.gc_collecting
        if not read_int(self._memory, collecting, 4):
            return False, None
        if not layout.gc_counts:
            return True, None
        # A collection adds one to the count of the next older generation and sets its own and
        # those of younger ones to 0, before it begins (in 3.6 to 3.13).
        counts = [read_int(self._memory, collecting + offset, 4) for offset in layout.gc_counts]
        older = (number for number, count in enumerate(counts) if count)
        return True, next(older, len(counts))

    def _tid(self, tstate: int) -> int | None:
        """Return the id of the thread as the agent sees it, None if it cannot be told."""
        known = read_int(self._memory, tstate + self._runtime.layout.thread_id, 8)
        # A thread state's memory may become another's.
        if self._tids.get(tstate, (0, None))[0] != known:
            if len(self._tids) >= _MOST_THREADS:
                self._tids.clear()
            # All threads may have to be read for that, which is too much for who is not to wait.
            tid = self._handed(lambda: self._threads.tid_of(tstate))
            self._tids[tstate] = (known, tid)
        tid = self._tids[tstate][1]
        if tid is None:
            del self._tids[tstate]
        return tid
