"""Reads the lock of a CPython 2.7: whether it is held, by whom, and where all threads stand."""

from dataclasses import replace
from typing import Final

from gilscope.model.gil import Gil
from gilscope.model.moment.seen import LockNow
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.process.remote_read import Memory, TornRead, read_int, read_pointer
from gilscope.runtimes.base import HeldWord, HolderSample
from gilscope.runtimes.cpython.held_stack import HolderReader
from gilscope.runtimes.cpython.runtime import Runtime
from gilscope.runtimes.cpython.standing import StandingReader
from gilscope.runtimes.cpython.threads import ThreadFinder
from gilscope.runtimes.cpython27.layout import TICK_COUNTER

__all__ = [
    "LOCK_WORD",
    "HolderReader27",
    "LockMemory27",
    "StandingReader27",
    "is_held",
    "semaphore",
]

_VALUE_SIZE: Final = 4
"""Of a semaphore of glibc's: the low half of its first word; the high one counts who waits."""
LOCK_WORD: Final = HeldWord(0, _VALUE_SIZE, 0, is_held_if_equal=True)
_SEMAPHORE_SIZE: Final = 32
"""``sizeof(sem_t)``."""


def semaphore(memory: Memory, lock_pointer: int) -> int | None:
    """Return the address of the semaphore, None before the first thread; raises as `read_int`."""
    return read_pointer(memory, lock_pointer) or None


def is_held(memory: Memory, address: int) -> bool:
    """Return whether the semaphore at *address* is taken; raises as `read_int` does."""
    return read_int(memory, address, _VALUE_SIZE) == 0


class LockMemory27:
    """The lock of one process, as its semaphore shows it."""

    def __init__(
        self, memory: ProcessMemory, current: int, threads: ThreadFinder, reads: Reads
    ) -> None:
        self._memory = memory
        self._current = current
        self._threads = threads
        self._reads = reads

    def is_locked(self, cond: int) -> bool | None:
        """Return whether the lock is held now; None where it cannot be read."""
        try:
            return self._reads(lambda: is_held(self._memory, cond))
        except (OSError, TornRead):
            return None

    def holder_tid(self, cond: int) -> int | None:  # noqa: ARG002 - there is one lock
        """Return the thread that holds the lock; None if it cannot be told."""
        try:
            return self._reads(self._holder_tid)
        except (OSError, TornRead):
            return None

    def _holder_tid(self) -> int | None:
        tstate = read_pointer(self._memory, self._current)
        return self._threads.tid_of(tstate) if tstate else None


class HolderReader27(HolderReader):
    """Its holder: the thread state that the interpreter calls the current one."""

    def __init__(
        self,
        memory: ProcessMemory,
        runtime: Runtime,
        current: int,
        threads: ThreadFinder,
        reads: Reads,
    ) -> None:
        super().__init__(memory, runtime, threads, reads)
        self._current = current

    def is_held_by(self, cond: int, sample: HolderSample) -> bool:
        """Return whether the thread of *sample* holds the lock now, and has come to no tick since.

        What it has done in calls that release the lock is not seen. Raises OSError likewise.
        """
        if not super().is_held_by(cond, replace(sample, switch_number=0)):
            return False
        try:
            return self._reads(lambda: self._ticks(sample.thread)) == sample.switch_number
        except TornRead:
            return False

    def _standing(self, tstate: int, switch_number: int) -> HolderSample:
        ticks = self._ticks(tstate)
        return replace(super()._standing(tstate, switch_number), switch_number=ticks)

    def _ticks(self, tstate: int) -> int:
        """Return how often the thread has given the lock away by itself."""
        return read_int(self._memory, tstate + TICK_COUNTER, 4)

    def _holder(self, cond: int) -> tuple[int, int] | None:
        if not is_held(self._memory, cond):
            return None
        tstate = read_pointer(self._memory, self._current)
        if not tstate:
            # Whoever takes the lock says so only behind that.
            raise TornRead("the lock is just being taken")
        return tstate, 0

    def _collection(self, tstate: int) -> tuple[bool, int | None]:  # noqa: ARG002 - of no thread
        # Whether garbage is collected a static variable of another module knows, which nothing
        # leads to.
        return False, None


class StandingReader27(StandingReader):
    """Where all its threads stand, and who holds its lock."""

    def __init__(
        self,
        memory: ProcessMemory,
        runtime: Runtime,
        words: tuple[int, int],
        threads: ThreadFinder,
        reads: Reads,
    ) -> None:
        """Take with *words* the addresses of the pointers to the lock and to its holder."""
        super().__init__(memory, runtime, threads, reads)
        self._lock_pointer, self._current = words

    def _locks(self) -> list[LockNow]:
        address = semaphore(self._memory, self._lock_pointer)
        if address is None:
            return []
        held = is_held(self._memory, address)
        holder = read_pointer(self._memory, self._current) if held else 0
        tids = {thread.tstate: tid for tid, thread in self._threads.all_by_tid()}
        return [
            LockNow(
                Gil(address, 0),
                is_held=held,
                holder_tid=tids.get(holder),
                first=address,
                last=address + _SEMAPHORE_SIZE,
            )
        ]
