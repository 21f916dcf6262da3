"""Makes profiles of what was lost since those that a receiver has taken last."""

import platform
import time
from collections.abc import Callable, Iterable, Mapping

from gilscope.model.application import Application
from gilscope.model.gil import GilObservation, Recording
from gilscope.model.observation import Observation
from gilscope.reports.gil.profiles import otlp
from gilscope.series.since import observation_since

__all__ = ["Profiles"]

_Key = tuple[int, int]
"""Pid and when it was attached to: numbers of processes come again."""


class Profiles:
    """Those of all processes, one after the other: what one of them has, no other has again."""

    def __init__(
        self, observe: Callable[[], Iterable[Observation]], mode: str, application: Application
    ) -> None:
        """Make them of what *observe* shows, in that *mode*."""
        self._observe = observe
        self._mode = mode
        self._application = application
        self._known: Mapping[_Key, GilObservation] = {}
        self._latest: Mapping[_Key, GilObservation] = {}

    def request(self) -> bytes | None:
        """Return those since the last that were taken; None: there is no process to tell of."""
        seen = [each.gil for each in self._observe() if each.gil is not None]
        self._latest = {_key(each): each for each in seen}
        recordings = [self._recording(each) for each in seen if self._is_new(each)]
        return otlp.render(*recordings).encode() if recordings else None

    def taken(self) -> None:
        """Note that the last request was: what is not taken is in the next one."""
        self._known = self._latest

    def _is_new(self, seen: GilObservation) -> bool:
        known = self._known.get(_key(seen))
        # Of a process that has ended there is a last one.
        return known is None or known.totals.at_ns < seen.totals.at_ns

    def _recording(self, seen: GilObservation) -> Recording:
        known = self._known.get(_key(seen))
        is_whole = known is None or bool(seen.invalid) or bool(known.invalid)
        shown = seen if known is None or is_whole else observation_since(seen, known)
        return Recording(
            shown,
            self._mode,
            max(1, shown.totals.at_ns - shown.since_ns),
            self._application,
            ended_ns=time.time_ns() - (time.monotonic_ns() - shown.totals.at_ns),
            host=platform.node(),
        )


def _key(seen: GilObservation) -> _Key:
    return seen.process.pid, seen.since_ns
