"""Knows in which seconds more happened than was sent one by one."""

from collections.abc import Iterable, Mapping
from typing import Final

from gilscope.model.gil import Record

__all__ = ["SECOND_SHIFT", "Seconds"]

SECOND_SHIFT: Final = 30
"""2**30 ns are what the probes call a second."""
_NEARLY = 0.98
"""Processors that count at the same time let one span too few pass."""


class Seconds:
    """When spans were not sent, because there had been as many in that second as are sent."""

    def __init__(self, most: int) -> None:
        """At most *most* are sent in a second."""
        self._enough = int(most * _NEARLY)
        self._spans: dict[int, tuple[int, int]] = {}

    def add(self, record: Record) -> None:
        """Note that *record* was sent."""
        second = record["ended_ns"] >> SECOND_SHIFT
        number, last_ns = self._spans.get(second, (0, 0))
        self._spans[second] = number + 1, max(last_ns, record["ended_ns"])

    def unseen(self, began_ns: int, ended_ns: int) -> tuple[tuple[int, int], ...]:
        """Return what of that time nothing is known of, as (from, to)."""
        return tuple(
            (max(began_ns, last_ns), min(ended_ns, (second + 1) << SECOND_SHIFT))
            for second, (number, last_ns) in _of(self._spans, began_ns, ended_ns)
            if number >= self._enough and last_ns < ended_ns
        )


def _of(
    spans: Mapping[int, tuple[int, int]], began_ns: int, ended_ns: int
) -> Iterable[tuple[int, tuple[int, int]]]:
    for second in range(began_ns >> SECOND_SHIFT, (ended_ns >> SECOND_SHIFT) + 1):
        if second in spans:
            yield second, spans[second]
