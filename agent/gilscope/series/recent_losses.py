"""Tells what has been lost lately from samples that come whenever somebody asks."""

from collections.abc import Sequence
from typing import Final

from gilscope.series.by_name.ledger import Line
from gilscope.series.sliding_totals import Sample, SlidingTotals
from gilscope.text.units import NS_PER_S

__all__ = ["RecentLosses"]

_LONGEST_NS: Final = 75 * NS_PER_S
"""So much longer than a minute that who scrapes once a minute has a period, too."""
_SHORTEST_NS: Final = NS_PER_S
_APART_NS: Final = 15 * NS_PER_S
"""Samples that follow one another more closely are not kept."""


class RecentLosses:
    """A few earlier states of the lines of one process. Keeps no clock and costs nothing alone."""

    def __init__(self, since_ns: int) -> None:
        """Nothing had been lost at *since_ns*."""
        self._start = Sample(since_ns, ())
        self._samples = SlidingTotals(_LONGEST_NS // _APART_NS + 1, _APART_NS)
        self._samples.add(*self._start)

    def sample(self, at_ns: int, lines: Sequence[Line]) -> None:
        """Keep the state of now, if the last one is old enough."""
        if self._samples.is_due(at_ns):
            self._samples.add(at_ns, [line.ns for line in lines])

    def since_ns(self, at_ns: int) -> int:
        """Return where the period begins that `lost_ns` is about.

        It is about a minute ago, or later if there was no sample then, or the very beginning if
        there was none since.
        """
        return self._begin(at_ns).at_ns

    def lost_ns(self, at_ns: int, lines: Sequence[Line]) -> list[int]:
        """Return what each of *lines* has lost in the period up to *at_ns*."""
        before_ns = self._begin(at_ns).totals
        times_ns = [line.ns for line in lines]
        for number, ns in enumerate(before_ns):
            times_ns[number] -= ns
        return times_ns

    def _begin(self, at_ns: int) -> Sample:
        recent = self._samples.between(at_ns - _LONGEST_NS, at_ns - _SHORTEST_NS)
        return next(recent, self._start)
