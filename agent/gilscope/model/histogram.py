"""Histograms of durations: slots from the kernel, buckets for Prometheus, quantiles for people."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import add, sub

from gilscope.values import dataclass

__all__ = [
    "BOUNDS_NS",
    "EMPTY",
    "OCTAVES",
    "OCTAVE_BITS",
    "SLOTS",
    "STEPS",
    "STEP_BITS",
    "Histogram",
    "bound_ns",
    "slot_of",
    "total",
    "upto_bounds",
]

OCTAVE_BITS = 3
"""An octave, from one power of two to the next, is divided into 2**OCTAVE_BITS slots."""

_IN_OCTAVE = 1 << OCTAVE_BITS
_EXACT = 2 * _IN_OCTAVE
"""Up to so many nanoseconds each has a slot of its own."""
STEP_BITS = 31


def _step(number: int) -> int:
    """Return 2**(STEP_BITS + number/8), rounded down."""
    return math.isqrt(math.isqrt(math.isqrt(1 << (_IN_OCTAVE * STEP_BITS + number))))


STEPS = tuple(_step(number) for number in range(1, _IN_OCTAVE))
"""Where slots begin within an octave, as which each begins at 2**STEP_BITS: each slot is 9 % wider
than the one before, so the middle of none is more than a twentieth off."""
_LAST = 34
OCTAVES = _LAST + 2
"""Octave k has values with 2**(k-1) < ns <= 2**k; the last one whatever is longer."""
SLOTS = (_LAST - OCTAVE_BITS + 1) * _IN_OCTAVE + 1
"""The last one counts whatever is longer."""

_NONE = (0,) * SLOTS

_FIRST_BOUND, _OCTAVES_APART = 14, 2
BOUNDS_NS = tuple(1 << octave for octave in range(_FIRST_BOUND, _LAST + 1, _OCTAVES_APART))
"""Upper bounds that are published: 16.4 us to 17.2 s, each four times the one before. What is
longer is in +Inf alone. Each bound is a series of every histogram; who needs finer ones has them in
native histograms, which tell all slots apart."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Histogram:
    """Durations: how many fell into each slot, and their exact sum.

    Thousands are remembered, and most slots of most of them count nothing: kept is what lies
    between the first that does and the last.
    """

    _first: int
    _filled: tuple[int, ...]
    sum_ns: int

    def __init__(self, slots: Sequence[int], sum_ns: int) -> None:
        """Take the counts of all SLOTS *slots*; raises ValueError where there are not as many."""
        if len(slots) != SLOTS:
            raise ValueError(f"a histogram has {SLOTS} slots, and not {len(slots)}")
        first, end = _filled_range(slots)
        object.__setattr__(self, "_first", first)
        object.__setattr__(self, "_filled", tuple(slots[first:end]))
        object.__setattr__(self, "sum_ns", sum_ns)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(slots={self.slots}, sum_ns={self.sum_ns})"

    @property
    def slots(self) -> tuple[int, ...]:
        """The counts of all slots."""
        after = SLOTS - self._first - len(self._filled)
        return (*_NONE[: self._first], *self._filled, *_NONE[:after])

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self._filled)

    @property
    def is_empty(self) -> bool:
        """Whether it counts nothing."""
        return not (self._filled or self.sum_ns)

    def __add__(self, other: "Histogram") -> "Histogram":
        # Most of a thousand processes have waited for nothing.
        if other.is_empty:
            return self
        if self.is_empty:
            return other
        return self.with_each(add, other)

    def __sub__(self, earlier: "Histogram") -> "Histogram":
        if earlier.is_empty:
            return self
        return self.with_each(sub, earlier)

    def with_each(self, operation: Callable[[int, int], int], other: "Histogram") -> "Histogram":
        """Return what *operation* makes of each slot, and of the sum, of both."""
        slots = tuple(map(operation, self.slots, other.slots))
        return Histogram(slots, operation(self.sum_ns, other.sum_ns))

    def cumulative(self) -> tuple[tuple[int, int], ...]:
        """Return (upper bound in ns, count of values up to it) for every bound of BOUNDS_NS."""
        return tuple(zip(BOUNDS_NS, upto_bounds(self.slots), strict=False))

    def buckets(self) -> tuple[tuple[int | None, int], ...]:
        """Return (upper bound in ns, count) of each slot that counts any, and of the one before it.

        So the bound before is the lower one, or there is none and it is 0. Beyond the last bound,
        which is always told, it is None.
        """
        *bounded, longer = self.slots
        shown = (
            (bound_ns(slot), here)
            for slot, (here, after) in enumerate(zip(bounded, (*bounded[1:], longer), strict=True))
            if here or after
        )
        return (*shown, (None, longer))

    def octaves(self) -> tuple[int, ...]:
        """Return how many values are in each of the OCTAVES."""
        upto = tuple(accumulate(self.slots))
        counts = [upto[slot_of(1 << octave)] for octave in range(OCTAVES - 1)]
        counts.append(upto[-1])
        return tuple(now - before for now, before in zip(counts, (0, *counts), strict=False))

    def quantile_ns(self, q: float) -> int | None:
        """Return quantile *q*, at most a twentieth off (from 64 ns on); None when empty.

        That is the middle of the slot that it lies in; beyond the last bound, the last bound.
        """
        count = self.count
        if count == 0:
            return None
        rank = max(1, math.ceil(q * count))
        seen = 0
        for slot, here in enumerate(self.slots[:-1]):
            seen += here
            if seen >= rank:
                lower_ns = bound_ns(slot - 1) if slot else 0
                return (lower_ns + bound_ns(slot) + 1) // 2
        return BOUNDS_NS[-1]


def slot_of(ns: int) -> int:
    """Return the slot that the kernel side would count *ns* in."""
    below = max(ns - 1, 0)
    if below < _EXACT:
        return below
    high = below.bit_length() - 1
    step = bisect_right(STEPS, (below << STEP_BITS) >> high)
    return min(((high - OCTAVE_BITS + 1) << OCTAVE_BITS) + step, SLOTS - 1)


def bound_ns(slot: int) -> int:
    """Return the longest duration that is counted in *slot*, which is not the last one."""
    if slot < _EXACT:
        return slot + 1
    octave, step = divmod(slot, _IN_OCTAVE)
    high = octave + OCTAVE_BITS - 1
    if step == len(STEPS):
        return 2 << high
    # Rounded up: the next slot begins there, less the nanosecond that slots end with.
    return -(-(STEPS[step] << high) >> STEP_BITS)


def upto_bounds(slots: Sequence[int]) -> tuple[int, ...]:
    """Return how many of *slots* are counted up to each of BOUNDS_NS, and then all of them."""
    # A slot ends at each power of two, the last one before the rest among them.
    upto = tuple(accumulate(slots))
    return (*upto[slot_of(BOUNDS_NS[0]) :: _OCTAVES_APART * _IN_OCTAVE], upto[-1])


def total(histograms: Iterable[Histogram]) -> Histogram:
    """Return the sum of *histograms*."""
    return sum(histograms, start=EMPTY)


def _filled_range(slots: Sequence[int]) -> tuple[int, int]:
    """Return the first slot that counts anything and the one after the last; 0, 0: none does."""
    if not any(slots):
        return 0, 0
    first, end = 0, len(slots)
    # By octaves, which `any` goes through at once.
    while not any(slots[first : first + _IN_OCTAVE]):
        first += _IN_OCTAVE
    while not slots[first]:
        first += 1
    while not any(slots[end - _IN_OCTAVE : end]):
        end -= _IN_OCTAVE
    while not slots[end - 1]:
        end -= 1
    return first, end


EMPTY = Histogram(_NONE, 0)
