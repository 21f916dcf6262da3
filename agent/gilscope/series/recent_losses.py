"""Tells what has been lost lately from looks that come whenever somebody asks."""

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gilscope.series.ledger import Line
from gilscope.text.units import NS_PER_S

__all__ = ["RecentLosses"]

_LONGEST_NS: Final = 75 * NS_PER_S
"""So much longer than a minute that who scrapes once a minute has a period, too."""
_SHORTEST_NS: Final = NS_PER_S
_APART_NS: Final = 15 * NS_PER_S
"""Looks that follow one another more closely are not kept."""


@dataclass(frozen=True, slots=True)
class _Look:
    at_ns: int
    times_ns: "array[int]"
    """By line, as far as there were lines then."""


class RecentLosses:
    """A few earlier states of the lines of one process. Keeps no clock and costs nothing alone."""

    def __init__(self, since_ns: int) -> None:
        """Nothing had been lost at *since_ns*."""
        self._start = _Look(since_ns, array("q"))
        self._looks = deque([self._start], maxlen=_LONGEST_NS // _APART_NS + 1)

    def look(self, at_ns: int, lines: Sequence[Line]) -> None:
        """Keep the state of now, if the last one is old enough."""
        if at_ns - self._looks[-1].at_ns >= _APART_NS:
            self._looks.append(_Look(at_ns, array("q", [line.ns for line in lines])))

    def since_ns(self, at_ns: int) -> int:
        """Return where the period begins that `lost_ns` is about.

        It is about a minute ago, or later if there was no look then, or the very beginning if there
        was none since.
        """
        return self._begin(at_ns).at_ns

    def lost_ns(self, at_ns: int, lines: Sequence[Line]) -> list[int]:
        """Return what each of *lines* has lost in the period up to *at_ns*."""
        before_ns = self._begin(at_ns).times_ns
        times_ns = [line.ns for line in lines]
        for number, ns in enumerate(before_ns):
            times_ns[number] -= ns
        return times_ns

    def _begin(self, at_ns: int) -> _Look:
        for look in self._looks:
            if _SHORTEST_NS <= at_ns - look.at_ns <= _LONGEST_NS:
                return look
        return self._start
