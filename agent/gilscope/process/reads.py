"""Reads one traced process, as long as it answers and costs no more than it may."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from gilscope.process.memory import ProcessMemory
from gilscope.process.memory_reader import Answer, MemoryReader, Reading, ReadUnanswered
from gilscope.process.reading_allowance import ReadingAllowance

__all__ = ["DirectReads", "ProcessReads", "Reads", "read_of_each"]

_T = TypeVar("_T")


class Reads(Protocol):
    """Has things read, and knows why nothing is read any more."""

    @property
    def stopped(self) -> str:
        """Why nothing is read any more, in words; empty: it is."""

    @property
    def direct(self) -> "Reads":
        """The same by the thread that asks: for one that can be left behind where it hangs."""

    def __call__(self, read: Callable[[], _T]) -> _T:
        """Return what *read* returns; raises what it raises, and OSError where nothing is read."""

    def waited(self, wait_s: float) -> None:
        """Take note that who reads directly has waited for memory: others have waited, too."""

    def give_up(self) -> None:
        """Read nothing any more, for the memory does not answer."""


class DirectReads:
    """Reads right away: for memory that is the reader's own."""

    stopped = ""

    @property
    def direct(self) -> "DirectReads":
        """Itself."""
        return self

    def __call__(self, read: Callable[[], _T]) -> _T:
        """Return what *read* returns."""
        return read()

    def waited(self, wait_s: float) -> None:
        """Keep no account."""

    def give_up(self) -> None:
        """Have nobody to give up on."""


class ProcessReads:
    """Has the memory of one process read in another thread, and stops where that is too much."""

    def __init__(self, reader: MemoryReader, pid: int, memory: ProcessMemory) -> None:
        """Read by *reader*; *memory* of *pid* is given up where it does not answer."""
        self._reader = reader
        self._pid = pid
        self._memory = memory
        self._allowance = ReadingAllowance()
        self._unanswered = ""

    @property
    def stopped(self) -> str:
        """Why nothing is read any more, in words; empty: it is."""
        if self._unanswered:
            return self._unanswered
        return str(self._allowance) if self._allowance.is_used_up else ""

    def __call__(self, read: Callable[[], _T]) -> _T:
        """Return what *read* returns; raises ReadUnanswered from when memory does not answer."""
        (answer,) = read_of_each([(self, read)])
        return answer.get()

    @property
    def direct(self) -> Reads:
        """The same by the thread that asks, which waits for memory however long that takes."""
        return _ReadsByAsker(self)

    @property
    def reader(self) -> MemoryReader:
        """Whose threads read."""
        return self._reader

    def reading(self, read: Callable[[], _T]) -> Reading[_T]:
        """Return *read* as a thread of the reader is to do it."""
        return Reading(self._pid, lambda: self.by_asker(read), waited=self._allowance.waited)

    def by_asker(self, read: Callable[[], _T]) -> _T:
        """Return what *read* returns, in this thread; raises what it raises, and ReadUnanswered."""
        if self._unanswered:
            raise ReadUnanswered(self._unanswered)
        return self._allowance.counted(read)

    def waited(self, wait_s: float) -> None:
        """Take note that who reads directly has waited for memory."""
        self._allowance.waited(wait_s)

    def give_up(self) -> None:
        """Read nothing any more, for the memory does not answer."""
        self._unanswered = "its memory does not answer: a page of it comes from what hangs"
        self._memory.give_up()


class _ReadsByAsker:
    """The reads of a process, each by the thread that asks."""

    def __init__(self, reads: ProcessReads) -> None:
        self._reads = reads

    @property
    def stopped(self) -> str:
        return self._reads.stopped

    @property
    def direct(self) -> Reads:
        return self

    def __call__(self, read: Callable[[], _T]) -> _T:
        # What is read too much of is given up in the next moment; others may not wait until then.
        if self.stopped:
            raise ReadUnanswered(self.stopped)
        return self._reads.by_asker(read)

    def waited(self, wait_s: float) -> None:
        self._reads.waited(wait_s)

    def give_up(self) -> None:
        self._reads.give_up()


def read_of_each(asked: Sequence[tuple[Reads, Callable[[], _T]]]) -> list[Answer[_T]]:
    """Return the answer of each process that is *asked*; one that hangs is given up.

    To be preferred where many are asked: they are waited for together.
    """
    answers: dict[int, Answer[_T]] = {}
    by_reader: dict[MemoryReader, list[tuple[int, ProcessReads, Reading[_T]]]] = {}
    for at, (reads, read) in enumerate(asked):
        if isinstance(reads, ProcessReads):
            by_reader.setdefault(reads.reader, []).append((at, reads, reads.reading(read)))
        else:
            answers[at] = _directly(reads, read)
    for reader, handed in by_reader.items():
        found = reader.read_each([reading for _, _, reading in handed])
        for (at, reads, _), answer in zip(handed, found, strict=True):
            answers[at] = answer
            if isinstance(answer.error, ReadUnanswered):
                reads.give_up()
    return [answers[at] for at in range(len(asked))]


def _directly(reads: Reads, read: Callable[[], _T]) -> Answer[_T]:
    try:
        return Answer(reads(read))
    except Exception as error:  # noqa: BLE001 - it is raised where it is asked for
        return Answer(error=error)
