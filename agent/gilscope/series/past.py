"""Remembers some observations of the last minutes, so that a report of these can be made."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import zip_longest
from typing import Generic, TypeVar

from gilscope.model.gil import GilObservation
from gilscope.model.locks import LockObservation
from gilscope.model.transactions import StmObservation
from gilscope.text.units import NS_PER_S
from gilscope.values import dataclass

__all__ = ["LONGEST_S", "Past", "Pasts"]

LONGEST_S = 600
"""How far back it goes."""
_APART_NS = 8 * NS_PER_S
_MOST_BYTES = 10_000_000
_THREAD_BYTES, _EDGE_BYTES = 800, 60
"""About; edges that have not changed are shared with other observations."""

_Any = GilObservation | StmObservation | LockObservation
_Seen = TypeVar("_Seen", bound=_Any)

_Part = TypeVar("_Part")

_Key = tuple[int, int]
"""Pid and when it was attached to: numbers of processes come again."""


class Past(Generic[_Seen]):
    """Observations of all processes at several times, the older the further apart if need be."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """Keep about *most_bytes* at the most, and one observation at the least."""
        self._most_bytes = most_bytes
        self._times: tuple[tuple[int, Mapping[_Key, _Seen]], ...] = ()

    def enter(self, at_ns: int, seen: Sequence[_Seen]) -> None:
        """Keep what was *seen* at *at_ns*, unless it follows the last one closely."""
        times = self._times
        if times and at_ns - times[-1][0] < _APART_NS:
            return
        recent = [each for each in times if at_ns - each[0] <= LONGEST_S * NS_PER_S]
        last = recent[-1][1] if recent else {}
        entered = {
            _key(each): _sharing(each, last.get(_key(each))) for each in seen if not each.invalid
        }
        times = (*recent, (at_ns, entered))
        while len(times) > 1 and sum(_bytes(kept) for _, kept in times) > self._most_bytes:
            # From the latest one back, every second one.
            times = times[::-2][::-1]
        self._times = times

    def near(self, at_ns: int, seen: _Seen) -> _Seen | None:
        """Return the process of *seen* as it was at about *at_ns*, the nearest that is known.

        None: it was attached to nearer to that, or nothing is known from before.
        """
        known = [each[_key(seen)] for _, each in self._times if _key(seen) in each]
        earlier = [each for each in known if _at_ns(each) < _at_ns(seen)]
        best = min(earlier, key=lambda each: abs(_at_ns(each) - at_ns), default=None)
        if best is None or abs(seen.since_ns - at_ns) <= abs(_at_ns(best) - at_ns):
            return None
        return None if seen.since_ns >= at_ns else best


@dataclass(frozen=True, slots=True)
class Pasts:
    """Those of all that is traced."""

    gils: Past[GilObservation] = field(default_factory=Past)
    transactions: Past[StmObservation] = field(default_factory=Past)
    locks: Past[LockObservation] = field(default_factory=Past)


def _key(seen: _Any) -> _Key:
    return seen.process.pid, seen.since_ns


def _sharing(now: _Seen, before: _Seen | None) -> _Seen:
    """Return *now* made of the same threads and locks as *before*, where they have not changed.

    Most of a thousand processes are idle.
    """
    if not (isinstance(now, GilObservation) and isinstance(before, GilObservation)):
        return now
    totals, earlier = now.totals, before.totals
    shared = replace(
        totals,
        threads=_shared(totals.threads, earlier.threads),
        gils=_shared(totals.gils, earlier.gils),
    )
    return replace(now, totals=shared)


def _shared(now: tuple[_Part, ...], before: tuple[_Part, ...]) -> tuple[_Part, ...]:
    if now == before:
        return before
    return tuple(old if new == old else new for new, old in zip_longest(now, before[: len(now)]))


def _at_ns(seen: _Any) -> int:
    return seen.since_ns if seen.totals is None else seen.totals.at_ns


def _bytes(seen: Mapping[_Key, _Any]) -> int:
    return sum(
        _THREAD_BYTES * (1 + _threads(each)) + _EDGE_BYTES * _edges(each) for each in seen.values()
    )


def _threads(seen: _Any) -> int:
    return 0 if seen.totals is None else len(seen.totals.threads)


def _edges(seen: _Any) -> int:
    if isinstance(seen, GilObservation):
        return len(seen.totals.edges)
    if isinstance(seen, LockObservation) and seen.totals is not None:
        return sum(len(thread.waits) for thread in seen.totals.threads)
    return 0
