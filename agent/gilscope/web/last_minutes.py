"""What the traced processes have done in the last minutes, as `record` would have seen it."""

import platform
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import GilObservation, Recording, Refusal, ThreadTotals
from gilscope.model.kinds import Mode
from gilscope.model.locks import LockMoment, LockObservation, LockRecording
from gilscope.model.observation import Observation
from gilscope.model.session import Session
from gilscope.model.stack import Frame
from gilscope.model.timeline import Moment
from gilscope.model.transactions import StmObservation, StmRecording
from gilscope.process.files.source_files import SourceLines
from gilscope.reports.gil.heat import hottest
from gilscope.series.locks.since import lock_observation_since
from gilscope.series.past import Pasts
from gilscope.series.since import observation_since
from gilscope.series.transactions.since import stm_observation_since
from gilscope.text.units import NS_PER_S
from gilscope.web.moments import NO_MOMENTS, Moments

__all__ = ["LastMinutes"]

_LEAST_HOLDS = 10
"""In windows, from which the number of all is estimated."""
_MOST_READ = 20
"""Processes whose source lines are read."""

_Seen = TypeVar("_Seen", GilObservation, StmObservation, LockObservation)


class LastMinutes:
    """What is traced now, less what is remembered of it."""

    def __init__(  # noqa: PLR0913 - most have defaults
        self,
        observe: Callable[[], Sequence[Observation]],
        pasts: Pasts,
        refusals: Callable[[], Sequence[Refusal]] = tuple,
        *,
        mode: Mode = Mode.AUTO,
        application: Application = EVERYBODYS,
        moments: Moments = NO_MOMENTS,
    ) -> None:
        """Tell of what *observe* shows, less what *pasts* remember.

        *moments* tell when a process has waited most since a time.
        """
        self._observe = observe
        self._pasts = pasts
        self._refusals = refusals
        self._mode = mode
        self._application = application
        self._moments = moments

    def session(self, last_s: float, pids: Collection[int] = ()) -> Session:
        """Return what happened in the *last_s*, in *pids* or else in all processes."""
        from_ns = time.monotonic_ns() - int(last_s * NS_PER_S)
        seen = [each for each in self._observe() if not pids or each.process.pid in pids]
        gils = [self._since(each, from_ns) for each in _told((each.gil for each in seen), from_ns)]
        gils.sort(key=lambda each: -each.totals.wait_ns)
        recordings = tuple(
            self._recording(each, reads_sources=at < _MOST_READ) for at, each in enumerate(gils)
        )
        live = tuple(
            self._stm_recording(each, from_ns)
            for each in _told((each.transactions for each in seen), from_ns)
        )
        locks = tuple(
            self._lock_recording(each, from_ns, reads_sources=at < _MOST_READ)
            for at, each in enumerate(_told((each.locks for each in seen), from_ns))
        )
        every: list[Recording | StmRecording | LockRecording] = [*recordings, *live, *locks]
        return Session(
            max((each.duration_ns for each in every), default=0),
            self._mode.value,
            recordings,
            live,
            refusals=() if pids else tuple(self._refusals()),
            locks=locks,
        )

    def _since(self, seen: GilObservation, from_ns: int) -> GilObservation:
        earlier = None if seen.invalid else self._pasts.gils.near(from_ns, seen)
        shown = seen if earlier is None else observation_since(seen, earlier)
        return shown if self._mode is not Mode.AUTO else _without_windows(shown)

    def _stm_recording(self, seen: StmObservation, from_ns: int) -> StmRecording:
        earlier = None if seen.invalid else self._pasts.transactions.near(from_ns, seen)
        shown = seen if earlier is None else stm_observation_since(seen, earlier)
        return StmRecording(shown, max(1, shown.totals.at_ns - shown.since_ns))

    def _lock_recording(
        self, seen: LockObservation, from_ns: int, *, reads_sources: bool
    ) -> LockRecording:
        earlier = None if seen.invalid else self._pasts.locks.near(from_ns, seen)
        shown = seen if earlier is None else lock_observation_since(seen, earlier)
        assert shown.totals is not None  # noqa: S101 - others are not told
        reads_sources = reads_sources and not seen.ended
        return LockRecording(
            shown,
            max(1, shown.totals.at_ns - shown.since_ns),
            self._application,
            _lines(seen.process.pid, shown.totals.frames()) if reads_sources else {},
            ended_ns=_unix_ns(shown.totals.at_ns),
            worst=self._worst_of_locks(shown),
        )

    def _worst_of_locks(self, seen: LockObservation) -> LockMoment | None:
        moment = self._moments.locks(seen.process.pid, seen.since_ns)
        if moment is None or seen.totals is None:
            return None
        # The account knows how many have been lost since it began.
        return replace(moment, dropped=seen.totals.lost_events.get("span", 0))

    def _worst(self, seen: GilObservation) -> Moment | None:
        moment = self._moments.gil(seen.process.pid, seen.since_ns)
        if moment is None or self._mode is Mode.FULL:
            return moment
        # Windows see the holds of a part of the time: those of all of it are inferred from waits.
        waits = tuple(span for span in moment.spans if span.kind is not None)
        return replace(moment, spans=waits, has_holds=False)

    def _recording(self, seen: GilObservation, *, reads_sources: bool) -> Recording:
        sources: Mapping[tuple[str, int], str] = {}
        listings: Mapping[tuple[str, int], str] = {}
        if reads_sources and not seen.ended:
            with SourceLines(seen.process.pid) as lines:
                sources = lines.read(seen.totals.frames())
                heats = hottest(seen.totals.edges, self._application)
                listings = lines.listings({heat.frame: heat.shown_lines for heat in heats})
        return Recording(
            seen,
            self._mode.value,
            max(1, seen.totals.at_ns - seen.since_ns),
            self._application,
            sources=sources,
            listings=listings,
            worst=self._worst(seen),
            ended_ns=_unix_ns(seen.totals.at_ns),
            host=platform.node(),
        )


def _told(every: Iterable[_Seen | None], from_ns: int) -> Iterator[_Seen]:
    """Yield those with figures: what has ended before *from_ns* has lost nothing since."""
    for seen in every:
        if seen is None or seen.totals is None:
            continue
        if not seen.ended or seen.totals.at_ns > from_ns:
            yield seen


def _lines(pid: int, frames: Iterable[Frame]) -> Mapping[tuple[str, int], str]:
    with SourceLines(pid) as lines:
        return lines.read(frames)


def _unix_ns(at_ns: int) -> int:
    """Return when it was *at_ns* of CLOCK_MONOTONIC, since the epoch."""
    return time.time_ns() - (time.monotonic_ns() - at_ns)


def _without_windows(seen: GilObservation) -> GilObservation:
    """Return *seen* without the holds that windows have seen, which are no sum of all of them.

    How often threads acquired the GIL is estimated from those.
    """
    totals = seen.totals
    covered = (totals.observed_ns or 0) / max(1, totals.at_ns - seen.since_ns)
    return replace(
        seen,
        totals=replace(
            totals,
            observed_ns=None,
            gils=tuple(replace(gil, holds=None) for gil in totals.gils),
            threads=tuple(_without_holds(thread, covered) for thread in totals.threads),
        ),
    )


def _without_holds(thread: ThreadTotals, covered: float) -> ThreadTotals:
    held = thread.held
    if held is None or covered <= 0 or held.count < _LEAST_HOLDS:
        return replace(thread, held=None)
    return replace(thread, held=None, acquires_about=round(held.count / covered))
