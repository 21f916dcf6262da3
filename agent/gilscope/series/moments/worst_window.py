"""Finds when threads waited most."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final

__all__ = ["FAR_NS", "MINUTE_NS", "MOMENT_NS", "worst_window", "worst_within"]

MOMENT_NS: Final = 200_000_000
"""How long the moment is that is shown. Forty switch intervals: a convoy can be seen, and each turn
of it too."""
MINUTE_NS: Final = 60_000_000_000
"""Where a report may be of any of the last minutes, the worst moment of each is kept."""
FAR_NS: Final = 1 << 63
"""Later than any time."""


def worst_within(
    waits: Iterable[tuple[int, int]], from_ns: int = 0, until_ns: int = FAR_NS
) -> int | None:
    """Return when the worst `MOMENT_NS` of that time begins; None where nobody waited in it.

    *waits* are (began_ns, ended_ns), of which what lies outside does not count.
    """
    inside = [
        (max(began_ns, from_ns), min(ended_ns, until_ns))
        for began_ns, ended_ns in waits
        if began_ns < until_ns and ended_ns > from_ns
    ]
    return worst_window(inside, MOMENT_NS) if inside else None


def worst_window(waits: Sequence[tuple[int, int]], length_ns: int) -> int:
    """Return when the *length_ns* begin in which the most waiting time lies, the first of equals.

    *waits* are (began_ns, ended_ns), at least one.
    """
    waited = _Waited(waits)
    # What lies inside only stops growing where a wait begins at its beginning or ends at its end.
    earliest_ns = waited.times[0]
    starts = {began for began, _ in waits}
    starts |= {max(earliest_ns, ended - length_ns) for _, ended in waits}
    ordered = sorted(starts)
    before = waited.until(ordered)
    after = waited.until(start + length_ns for start in ordered)
    most_ns, worst = -1, earliest_ns
    for start, before_ns, after_ns in zip(ordered, before, after, strict=True):
        if after_ns - before_ns > most_ns:
            most_ns, worst = after_ns - before_ns, start
    return worst


class _Waited:
    """The waiting time of all threads up to any time: a line that bends where waits do."""

    def __init__(self, waits: Sequence[tuple[int, int]]) -> None:
        changes = Counter(began for began, _ in waits)
        changes.subtract(ended for _, ended in waits)
        self.times = sorted(changes)
        self._waiting = list(accumulate(changes[time] for time in self.times))
        lasted = (later - earlier for earlier, later in pairwise(self.times))
        parts = (ns * number for ns, number in zip(lasted, self._waiting, strict=False))
        self._sums = list(accumulate(parts, initial=0))

    def until(self, ordered_ns: Iterable[int]) -> Iterator[int]:
        """Yield the waiting time up to each of *ordered_ns*, of which none is before all waits."""
        at, last = 0, len(self.times) - 1
        for time_ns in ordered_ns:
            while at < last and self.times[at + 1] <= time_ns:
                at += 1
            yield self._sums[at] + (time_ns - self.times[at]) * self._waiting[at]
