"""Keeps what some totals had come to at moments of the last minutes."""

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["Sample", "SlidingTotals"]


class Sample(NamedTuple):
    """What the totals had come to at one moment."""

    at_ns: int
    totals: Sequence[int]


class SlidingTotals:
    """The latest samples of some totals, oldest first.

    All are in one array of 64-bit numbers: each of hundreds of processes may have eighty samples,
    and as objects these would take several times as much memory.

    Totals may be added at the end later on; in the samples from before they are 0.
    """

    __slots__ = ("_apart_ns", "_most", "_numbers", "_width")

    def __init__(self, most: int, apart_ns: int = 0) -> None:
        """Keep *most* samples, each of them *apart_ns* after the one before at the least."""
        self._most = most
        self._apart_ns = apart_ns
        self._width = 1
        """Numbers of one sample: its time, and the totals."""
        self._numbers = array("q")

    def is_due(self, at_ns: int) -> bool:
        """Return whether a sample of *at_ns* would be kept."""
        return not self._numbers or at_ns - self._numbers[-self._width] >= self._apart_ns

    def add(self, at_ns: int, totals: Sequence[int]) -> None:
        """Keep a sample, unless it follows the last one too closely, or is older.

        Raises ValueError for fewer *totals* than there were.
        """
        if not self.is_due(at_ns):
            return
        self._widen(1 + len(totals))
        self._numbers.append(at_ns)
        self._numbers.extend(totals)
        del self._numbers[: -self._most * self._width]

    def between(self, from_ns: int, until_ns: int) -> Iterator[Sample]:
        """Yield the samples of that time, both of its ends included."""
        for start in range(0, len(self._numbers), self._width):
            at_ns = self._numbers[start]
            if from_ns <= at_ns <= until_ns:
                yield Sample(at_ns, self._numbers[start + 1 : start + self._width])

    def _widen(self, width: int) -> None:
        more = width - self._width
        if more < 0:
            raise ValueError(f"{width - 1} totals after {self._width - 1}")
        if not more:
            return
        widened, zeros = array("q"), array("q", bytes(8 * more))
        for start in range(0, len(self._numbers), self._width):
            widened.extend(self._numbers[start : start + self._width])
            widened.extend(zeros)
        self._numbers, self._width = widened, width
