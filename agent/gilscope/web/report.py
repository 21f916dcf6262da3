"""Answers with a report of the last minutes of what is traced, as `record` would have made it."""

import http
import threading
from collections.abc import Mapping
from urllib.parse import parse_qs

from gilscope.model.session import Session
from gilscope.series.past import LONGEST_S
from gilscope.values import dataclass
from gilscope.web.last_minutes import LastMinutes
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

    def __init__(self, last_minutes: LastMinutes) -> None:
        """Report on *last_minutes*."""
        self._last_minutes = last_minutes
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
            session = self._last_minutes.session(wanted.last_s, wanted.pids)
            if not (session.recordings or session.transactions or session.locks):
                return http.HTTPStatus.NOT_FOUND, _PLAIN, b"no such process is traced\n"
            headers = {"Content-Type": FORMS[wanted.form], **_HEADERS}
            return http.HTTPStatus.OK, headers, _rendered(session, wanted)
        finally:
            self._turn.release()


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
