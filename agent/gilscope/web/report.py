"""Answers with a report of the last minutes of what is traced, as `record` would have made it."""

import http
import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qs

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import GilObservation, Recording, Refusal, ThreadTotals
from gilscope.model.kinds import Mode
from gilscope.model.session import Session
from gilscope.model.timeline import Moment
from gilscope.model.transactions import StmObservation, StmRecording
from gilscope.process.files.source_files import SourceLines
from gilscope.reports.gil.heat import hottest
from gilscope.series.past import LONGEST_S, Past
from gilscope.series.since import observation_since
from gilscope.series.transactions.since import stm_observation_since
from gilscope.text.units import NS_PER_S
from gilscope.web.listener import Answer

__all__ = ["DEFAULT_S", "FORMS", "Reporter"]

FORMS: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "text": "text/plain; charset=utf-8",
    "json": "application/json",
    "markdown": "text/markdown; charset=utf-8",
    "collapsed": "text/plain; charset=utf-8",
    "speedscope": "application/json",
    "pprof": "application/octet-stream",
    "otlp-profiles": "application/json",
}
"""What a report may be, with the types that it is sent as."""
DEFAULT_S = 300
_LEAST_HOLDS = 10
"""In windows, from which the number of all is estimated."""
_MOST_READ = 20
"""Processes whose source lines are read."""
_PLAIN = {"Content-Type": "text/plain; charset=utf-8"}
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class _Wanted:
    form: str
    last_s: float
    pids: frozenset[int]
    """Empty: of all."""
    is_whole: bool
    is_coloured: bool


class _Unclear(ValueError):
    """The query cannot be answered, in words."""


class Reporter:
    """Makes reports, one at a time."""

    def __init__(  # noqa: PLR0913 - most have defaults
        self,
        observe: Callable[[], Sequence[GilObservation]],
        past: Past[GilObservation],
        refusals: Callable[[], Sequence[Refusal]] = tuple,
        *,
        mode: Mode = Mode.AUTO,
        application: Application = EVERYBODYS,
        live: tuple[Callable[[], Sequence[StmObservation]], Past[StmObservation]] | None = None,
        moment: Callable[[int, int], Moment | None] = lambda _pid, _since_ns: None,
    ) -> None:
        """Report on what *observe* shows, less what *past* remembers of it.

        *live* are the same of transactions; *moment* tells when a process has waited most since
        a time.
        """
        self._observe = observe
        self._past = past
        self._refusals = refusals
        self._mode = mode
        self._application = application
        self._live = live
        self._moment = moment
        self._turn = threading.Lock()

    def answer(self, query: str) -> Answer:
        """Return the report that *query* wants: ``form``, ``last`` in seconds, ``pid``."""
        try:
            wanted = _wanted(query)
        except _Unclear as error:
            return http.HTTPStatus.BAD_REQUEST, _PLAIN, f"{error}\n".encode()
        if not self._turn.acquire(blocking=False):
            later = {**_PLAIN, "Retry-After": "1"}
            return http.HTTPStatus.SERVICE_UNAVAILABLE, later, b"another report is being made\n"
        try:
            session = self._session(wanted)
            if not (session.recordings or session.transactions):
                return http.HTTPStatus.NOT_FOUND, _PLAIN, b"no such process is traced\n"
            headers = {"Content-Type": FORMS[wanted.form], **_HEADERS}
            return http.HTTPStatus.OK, headers, _rendered(session, wanted)
        finally:
            self._turn.release()

    def _session(self, wanted: _Wanted) -> Session:
        seen = [
            each for each in self._observe() if not wanted.pids or each.process.pid in wanted.pids
        ]
        from_ns = time.monotonic_ns() - int(wanted.last_s * NS_PER_S)
        # What has ended before that has lost nothing since.
        told = [each for each in seen if not each.ended or each.totals.at_ns > from_ns]
        lately = sorted(
            (self._since(each, from_ns) for each in told), key=lambda each: -each.totals.wait_ns
        )
        recordings = [
            self._recording(each, reads_sources=at < _MOST_READ) for at, each in enumerate(lately)
        ]
        live = self._live_since(wanted, from_ns)
        every: list[Recording | StmRecording] = [*recordings, *live]
        return Session(
            max((each.duration_ns for each in every), default=0),
            self._mode.value,
            tuple(recordings),
            tuple(live),
            refusals=() if wanted.pids else tuple(self._refusals()),
        )

    def _live_since(self, wanted: _Wanted, from_ns: int) -> list[StmRecording]:
        if self._live is None:
            return []
        observe, past = self._live
        told = []
        for seen in observe():
            if wanted.pids and seen.process.pid not in wanted.pids:
                continue
            if seen.ended and seen.totals.at_ns <= from_ns:
                continue
            earlier = None if seen.invalid else past.near(from_ns, seen)
            shown = seen if earlier is None else stm_observation_since(seen, earlier)
            told.append(StmRecording(shown, max(1, shown.totals.at_ns - shown.since_ns)))
        return told

    def _since(self, seen: GilObservation, from_ns: int) -> GilObservation:
        earlier = None if seen.invalid else self._past.near(from_ns, seen)
        shown = seen if earlier is None else observation_since(seen, earlier)
        return shown if self._mode is not Mode.AUTO else _without_windows(shown)

    def _worst(self, seen: GilObservation) -> Moment | None:
        moment = self._moment(seen.process.pid, seen.since_ns)
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
            ended_ns=time.time_ns() - (time.monotonic_ns() - seen.totals.at_ns),
            host=platform.node(),
        )


def _wanted(query: str) -> _Wanted:
    given = {name: values[-1] for name, values in parse_qs(query).items()}
    form = given.get("form", "html")
    if form not in FORMS:
        raise _Unclear(f"there is no report as {form!a}; form is one of {', '.join(FORMS)}")
    last = given.get("last", str(DEFAULT_S))
    try:
        last_s = float(last)
    except ValueError:
        last_s = 0.0
    if not 1 <= last_s <= LONGEST_S:
        raise _Unclear(f"last is a number of seconds, from 1 to {LONGEST_S}")
    pid = given.get("pid", "")
    if pid and not (pid.isascii() and pid.isdigit()):
        raise _Unclear("pid is the number of a process")
    return _Wanted(
        form,
        last_s,
        frozenset({int(pid)} if pid else ()),
        is_whole="full" in given,
        is_coloured="colour" in given,
    )


def _rendered(session: Session, wanted: _Wanted) -> bytes:
    # Imported when somebody asks: most agents are only scraped.
    from gilscope.reports import renderers  # noqa: PLC0415 - see above

    if wanted.form == "text":
        shown = renderers.text(session, colour=wanted.is_coloured, whole=wanted.is_whole)
        return shown.encode()
    report = renderers.RENDERERS[wanted.form](session)
    return report if isinstance(report, bytes) else report.encode()


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
