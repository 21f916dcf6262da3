"""Knows in which seconds more happened than was sent one by one."""

from typing import Final

from gilscope.values import Record

__all__ = ["SECOND_SHIFT", "Seconds"]

SECOND_SHIFT: Final = 30
"""2**30 ns are what the probes call a second."""
_NEARLY = 0.98
"""Processors that count at the same time let one span too few pass."""
_LATE = 3
"""Seconds for which spans of another processor may still come."""
_MOST_CUT = 10_000
"""That are remembered one by one."""


class Seconds:
    """When spans were not sent, because there had been as many in that second as are sent."""

    def __init__(self, most: int) -> None:
        """At most *most* are sent in a second."""
        self._enough = int(most * _NEARLY)
        self._spans: dict[int, tuple[int, int]] = {}
        """How many of each second, and when the last one ended; in the order in which they came."""
        self._gone = 0
        """Cut ones that are not remembered any more."""

    def cut_since(self, since_ns: int = 0) -> int:
        """Return in how many seconds not all that happened was sent, those before left out."""
        first = since_ns >> SECOND_SHIFT
        known = sum(
            second >= first and number >= self._enough
            for second, (number, _) in self._spans.items()
        )
        return known if since_ns else self._gone + known

    def add(self, record: Record) -> None:
        """Note that *record* was sent."""
        second = record["ended_ns"] >> SECOND_SHIFT
        if second not in self._spans:
            self._forget_before(second - _LATE)
        number, last_ns = self._spans.get(second, (0, 0))
        self._spans[second] = number + 1, max(last_ns, record["ended_ns"])

    def unseen(self, began_ns: int, ended_ns: int) -> tuple[tuple[int, int], ...]:
        """Return what of that time nothing is known of, as (from, to)."""
        seconds = range(began_ns >> SECOND_SHIFT, (ended_ns >> SECOND_SHIFT) + 1)
        return tuple(
            (max(began_ns, last_ns), min(ended_ns, (second + 1) << SECOND_SHIFT))
            for second in seconds
            for number, last_ns in (self._spans.get(second, (0, 0)),)
            if number >= self._enough and last_ns < ended_ns
        )

    def _forget_before(self, second: int) -> None:
        """Forget what was sent as a whole, for days have many seconds; and the first cut ones."""
        old = [each for each, (number, _) in self._spans.items() if each < second]
        whole = [each for each in old if self._spans[each][0] < self._enough]
        for each in whole:
            del self._spans[each]
        if len(self._spans) > _MOST_CUT:
            del self._spans[next(iter(self._spans))]
            self._gone += 1
