"""Reads one traced process, as long as it answers and costs no more than it may."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from gilscope.process.memory import ProcessMemory
from gilscope.process.memory_reader import MemoryReader, ReadUnanswered
from gilscope.process.reading_allowance import ReadingAllowance

__all__ = ["DirectReads", "ProcessReads", "Reads"]

_T = TypeVar("_T")


class Reads(Protocol):
    """Has things read, and knows why nothing is read any more."""

    @property
    def stopped(self) -> str:
        """Why nothing is read any more, in words; empty: it is."""

    def __call__(self, read: Callable[[], _T]) -> _T:
        """Return what *read* returns; raises what it raises, and OSError where nothing is read."""

    def give_up(self) -> None:
        """Read nothing any more, for the memory does not answer."""


class DirectReads:
    """Reads right away: for memory that is the reader's own."""

    stopped = ""

    def __call__(self, read: Callable[[], _T]) -> _T:
        """Return what *read* returns."""
        return read()

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
        if self._unanswered:
            raise ReadUnanswered(self._unanswered)
        try:
            return self._reader.read(
                self._pid, lambda: self._counted(read), waited=self._allowance.waited
            )
        except ReadUnanswered:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Read nothing any more, for the memory does not answer."""
        self._unanswered = "its memory does not answer: a page of it comes from what hangs"
        self._memory.give_up()

    def _counted(self, read: Callable[[], _T]) -> _T:
        with self._allowance.counted():
            return read()
