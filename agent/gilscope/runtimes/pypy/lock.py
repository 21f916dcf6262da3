"""Reads the GIL of a PyPy: whether it is held, by whom, and what the holder does."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from gilscope.model.gil import Gil
from gilscope.model.moment.seen import LockNow, ThreadStack
from gilscope.model.stack import UNKNOWN_STACK, Stack, StackState
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.process.remote_read import Memory, TornRead, read_bytes
from gilscope.runtimes.base import HeldWord, HolderSample
from gilscope.runtimes.pypy.layout import Place
from gilscope.runtimes.pypy.own_work import OwnWork, read_own_work
from gilscope.runtimes.pypy.stacks import StackReader
from gilscope.runtimes.pypy.threads import PyPyThread, PyPyThreads, is_still
from gilscope.runtimes.torn_stacks import settled

__all__ = ["LOCK_WORD", "HolderReader", "LockMemory", "StandingReader", "holder_of"]

_WORD_SIZE: Final = 8
LOCK_WORD: Final = HeldWord(0, _WORD_SIZE, 0, is_held_if_equal=False)
_TRIES: Final = 8
_TORN: Final = Stack((), StackState.TORN)
_MOST_KNOWN: Final = 4096
_LOCK_SIZE: Final = 256
"""Behind the word lie the mutexes that threads wait for it by."""


def holder_of(memory: Memory, lock: int) -> int:
    """Return what PyPy calls the thread that holds the lock, 0 for nobody; raises TornRead.

    While a lock is handed over, that is a thread which has held it.
    """
    return int.from_bytes(read_bytes(memory, lock, _WORD_SIZE), "little")


class LockMemory:
    """The lock of one process."""

    def __init__(self, memory: ProcessMemory, threads: PyPyThreads, reads: Reads) -> None:
        self._memory = memory
        self._threads = threads
        self._reads = reads

    def is_locked(self, cond: int) -> bool | None:
        """Return whether the lock is held now; None where it cannot be read."""
        try:
            return self._reads(lambda: holder_of(self._memory, cond) != 0)
        except (OSError, TornRead):
            return None

    def holder_tid(self, cond: int) -> int | None:
        """Return the thread that holds the lock; None if it cannot be told."""
        try:
            holder = self._reads(lambda: holder_of(self._memory, cond))
            return self._reads(lambda: self._threads.tid_of(holder)) if holder else None
        except (OSError, TornRead):
            return None


class HolderReader:
    """The holder of one process' lock. One thread may use it."""

    def __init__(
        self,
        memory: ProcessMemory,
        place: Place,
        threads: PyPyThreads,
        stacks: StackReader,
        reads: Reads,
    ) -> None:
        self._memory = memory
        self._place = place
        self._threads = threads
        self._stacks = stacks
        self._reads = reads.direct
        self._handed = reads
        self._known: dict[int, tuple[int, PyPyThread]] = {}
        """By what PyPy calls the thread: its tid, and where it is."""

    def sample(self, cond: int) -> HolderSample | None:
        """Return what holds the lock at *cond*; None: nobody does.

        Raises OSError where the process is not read any more.
        """
        return self._reads(lambda: self._sample(cond))

    def is_held_by(self, cond: int, sample: HolderSample) -> bool:
        """Return whether the thread of *sample* holds the lock now; raises OSError likewise.

        That it has let another one have it in between is not seen.
        """
        try:
            return self._reads(lambda: holder_of(self._memory, cond)) == sample.thread
        except TornRead:
            return False

    def is_part_of(self, cond: int, address: int) -> bool:
        """Return whether *address* is of the lock: who sleeps there waits for it.

        The lock names who has had it until the next one runs.
        """
        return cond <= address < cond + _LOCK_SIZE

    def _sample(self, cond: int) -> HolderSample | None:
        for _ in range(_TRIES):
            try:
                holder = holder_of(self._memory, cond)
                if not holder:
                    return None
                sample = self._standing(holder)
                if holder_of(self._memory, cond) == holder:
                    return sample
            except TornRead:
                continue
        return HolderSample(_TORN, None, 0, 0, 0, is_collecting=False)

    def _standing(self, holder: int) -> HolderSample:
        found = self._found(holder)
        if found is None:
            return HolderSample(UNKNOWN_STACK, None, holder, 0, 0, is_collecting=False)
        tid, thread = found
        # First what it does: a stack takes longer to read.
        work = read_own_work(self._memory, self._place, self._all())
        stack, position = self._stacks.stack(thread)
        return HolderSample(
            stack,
            tid,
            holder,
            0,
            position,
            is_collecting=work is OwnWork.COLLECTION,
            is_compiling=work is OwnWork.COMPILATION,
            tells_native=False,
        )

    def _found(self, ident: int) -> tuple[int, PyPyThread] | None:
        """Return the thread that PyPy calls *ident*, with its tid."""
        known = self._known.pop(ident, None)
        if known is None or not is_still(self._memory, known[1]):
            # All threads are read for that, which is too much for who is not to wait.
            threads = self._handed(self._threads.by_tid)
            known = next((item for item in threads.items() if item[1].ident == ident), None)
        if known is not None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[ident] = known
        return known

    def _all(self) -> Iterator[PyPyThread]:
        """Yield all threads; they are read when they are asked for, which is seldom."""
        yield from self._threads.all()


class StandingReader:
    """All threads of one process at one moment. One thread may use it.

    All of it raises OSError where the process is not read any more, and TornRead where its list of
    threads makes no sense.
    """

    def __init__(
        self,
        memory: ProcessMemory,
        lock: int,
        threads: PyPyThreads,
        stacks: StackReader,
        reads: Reads,
    ) -> None:
        self._memory = memory
        self._lock = lock
        self._threads = threads
        self._stacks = stacks
        self._reads = reads

    def stacks(self, most: int) -> list[ThreadStack]:
        """Return where threads stand, of *most* at the most."""
        by_tid = list(self._reads(self._threads.by_tid).items())
        return [
            ThreadStack(tid, 0, self._reads(partial(self._stack, thread)))
            for tid, thread in by_tid[:most]
        ]

    def locks(self) -> list[LockNow]:
        """Return the lock and who holds it now."""
        return self._reads(self._locks)

    def tids_by_own_id(self) -> dict[int, int]:
        """Return the threads, as the agent sees tids, by what the process itself calls them."""
        return self._threads.tids_by_own_id()

    def _stack(self, thread: PyPyThread) -> Stack:
        return settled(lambda: self._stacks.stack(thread)[0])

    def _locks(self) -> list[LockNow]:
        holder = holder_of(self._memory, self._lock)
        return [
            LockNow(
                Gil(self._lock, 0),
                is_held=holder != 0,
                holder_tid=self._threads.tid_of(holder) if holder else None,
                first=self._lock,
                last=self._lock + _LOCK_SIZE,
            )
        ]
