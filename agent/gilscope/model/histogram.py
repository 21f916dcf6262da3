"""Power-of-two histograms: slots from the kernel, buckets for Prometheus, quantiles for people."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["BOUNDS_NS", "EMPTY", "SLOTS", "Histogram", "slot_of", "total"]

SLOTS = 36
"""Slot k counts values with 2**(k-1) < ns <= 2**k; the last one whatever is longer."""

_FIRST, _LAST = 10, 34
BOUNDS_NS = tuple(1 << slot for slot in range(_FIRST, _LAST + 1))
"""Upper bounds that are published: 1.024 us to 17.2 s. What is longer is in +Inf alone."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Durations: how many fell into each slot, and their exact sum."""

    slots: tuple[int, ...]
    sum_ns: int

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self.slots)

    def __add__(self, other: "Histogram") -> "Histogram":
        slots = tuple(a + b for a, b in zip(self.slots, other.slots, strict=True))
        return Histogram(slots, self.sum_ns + other.sum_ns)

    def __sub__(self, earlier: "Histogram") -> "Histogram":
        slots = tuple(a - b for a, b in zip(self.slots, earlier.slots, strict=True))
        return Histogram(slots, self.sum_ns - earlier.sum_ns)

    def cumulative(self) -> tuple[tuple[int, int], ...]:
        """Return (upper bound in ns, count of values up to it) for every bound of BOUNDS_NS."""
        total = sum(self.slots[:_FIRST])
        buckets = []
        for slot in range(_FIRST, _LAST + 1):
            total += self.slots[slot]
            buckets.append((1 << slot, total))
        return tuple(buckets)

    def quantile_ns(self, q: float) -> int | None:
        """Return the upper bound of the slot that holds quantile *q*; None when empty.

        The true quantile lies between half of it and it; beyond the last bound, the last bound.
        """
        count = self.count
        if count == 0:
            return None
        rank = max(1, math.ceil(q * count))
        seen = 0
        for slot, here in enumerate(self.slots):
            seen += here
            if seen >= rank:
                return 1 << min(slot, _LAST)
        return 1 << _LAST


def slot_of(ns: int) -> int:
    """Return the slot that the kernel side would count *ns* in."""
    return min((ns - 1).bit_length() if ns > 1 else 0, SLOTS - 1)


def total(histograms: Iterable[Histogram]) -> Histogram:
    """Return the sum of *histograms*."""
    return sum(histograms, start=EMPTY)


EMPTY = Histogram((0,) * SLOTS, 0)
