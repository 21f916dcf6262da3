"""Remembers what was lost in the last minutes, from samples that come whenever somebody asks."""

import threading
from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import Final, Generic, TypeVar

from gilscope.series.sliding_totals import Sample, SlidingTotals
from gilscope.text.units import NS_PER_S
from gilscope.values import dataclass

__all__ = ["WINDOW_NS", "Curve", "History", "Stretch", "Totals"]

WINDOW_NS: Final = 300 * NS_PER_S
"""So far back it reaches."""
_APART_NS: Final = 4 * NS_PER_S
"""Samples that follow one another more closely are not kept: who scrapes every 5 s is followed."""
_LATELY_NS: Final = 8 * NS_PER_S
"""The figure of now is of the time since the last sample that is at least so old."""
_MOST_SAMPLES: Final = WINDOW_NS // _APART_NS + 2
_MOST_KEYS: Final = 200
"""Each takes 2 KB."""
_UNKNOWN: Final = -1

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Totals:
    """What one process or log has come to at some moment."""

    since_ns: int
    """CLOCK_MONOTONIC when it was all zero; negative: not known."""
    lost_ns: int
    held_ns: int | None = None
    """None: it is not known, or there is no such thing."""
    locks: int = 1
    """By how many it is held; an estimate of it may come to more than the time that passed."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The time between two samples, as ages: how long before the last sample it began and ended."""

    began_ns: int
    ended_ns: int
    lost: float
    """Time lost by the time that passed; several threads may lose at once."""
    held: float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """The last minutes of one process or log."""

    lost: float | None
    """In the last ten seconds or so, as in `Stretch`; None: there was one sample only."""
    held: float | None
    stretches: tuple[Stretch, ...]
    """The oldest first."""


class History(Generic[Key]):
    """The last minutes of at most 200 processes or logs. Its methods may be called by threads."""

    def __init__(self) -> None:
        self._samples: dict[Key, SlidingTotals] = {}
        self._turn = threading.Lock()
        self._at_ns: int | None = None
        """When all of them were sampled last: that they are apart is the same for everybody."""

    def enter(self, at_ns: int, totals: Mapping[Key, Totals]) -> None:
        """Keep what everybody has come to at *at_ns*; who is not in *totals* any more is forgotten.

        A sample that follows the last one closely, or is older, is left out.
        """
        with self._turn:
            if self._at_ns is not None and at_ns - self._at_ns < _APART_NS:
                return
            self._at_ns = at_ns
            self._samples = {
                key: samples for key, samples in self._samples.items() if key in totals
            }
            for key, now in totals.items():
                samples = self._samples.get(key)
                if samples is None:
                    if len(self._samples) >= _MOST_KEYS:
                        continue
                    samples = self._samples[key] = SlidingTotals(_MOST_SAMPLES)
                    if 0 <= now.since_ns < at_ns:
                        samples.add(*_beginning(now))
                samples.add(*_sample(at_ns, now))

    def curve(self, key: Key, at_ns: int, now: Totals) -> Curve:
        """Return the last minutes of *key*, which has come to *now* at *at_ns*."""
        with self._turn:
            kept = self._samples.get(key)
            samples = [] if kept is None else list(kept.between(at_ns - WINDOW_NS, at_ns - 1))
        if not samples and 0 <= now.since_ns < at_ns:
            samples = [_beginning(now)]
        samples.append(_sample(at_ns, now))
        stretches = tuple(_stretch(*ends, at_ns, now.locks) for ends in pairwise(samples))
        if not stretches:
            return Curve(None, None, ())
        old = [sample for sample in samples if sample.at_ns <= at_ns - _LATELY_NS] or samples[:1]
        lately = _stretch(old[-1], samples[-1], at_ns, now.locks)
        return Curve(lately.lost, lately.held, stretches)


def _beginning(now: Totals) -> Sample:
    return Sample(now.since_ns, (0, 0))


def _sample(at_ns: int, now: Totals) -> Sample:
    return Sample(at_ns, (now.lost_ns, _UNKNOWN if now.held_ns is None else now.held_ns))


def _stretch(before: Sample, after: Sample, now_ns: int, locks: int) -> Stretch:
    length_ns = after.at_ns - before.at_ns
    (lost_before_ns, held_before_ns), (lost_ns, held_ns) = before.totals, after.totals
    held = None
    if _UNKNOWN not in (held_before_ns, held_ns):
        held = min(float(locks), max(0, held_ns - held_before_ns) / length_ns)
    # A figure that was put right may have fallen.
    lost = max(0, lost_ns - lost_before_ns) / length_ns
    return Stretch(now_ns - before.at_ns, now_ns - after.at_ns, lost, held)
