"""The HTTP side of ``serve``: metrics, health and the landing page."""

import http
import threading
from collections.abc import Mapping
from dataclasses import replace

from gilscope.exporter.collector import AgentCollector
from gilscope.exporter.exposition import encode, negotiate
from gilscope.exporter.kept_counters import KeptCounters
from gilscope.exporter.source import Logs, Source
from gilscope.exporter.targets import Targets
from gilscope.model.gil import GilObservation
from gilscope.model.kinds import Mode
from gilscope.series.blocking import BlockingSeries
from gilscope.series.conflicts import ConflictSeries
from gilscope.series.past import Past
from gilscope.system.named_thread import named_thread
from gilscope.web.address import Address
from gilscope.web.captures import Captured
from gilscope.web.compression import compressed
from gilscope.web.guard import OPEN, Guard
from gilscope.web.health import Health, Pulse
from gilscope.web.listener import Answer, Listener, Request, Route
from gilscope.web.moments import NO_MOMENTS, Moments
from gilscope.web.source_history import SourceHistory

__all__ = ["Server"]

_HISTORY_STALE_S = 20.0
_PATIENCE_S = 0.5
_PAGES = ("/", "/live", "/report", "/capture")
_PATHS = (*_PAGES, "/healthz", "/metrics")
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}
_STARTING: Answer = (
    http.HTTPStatus.SERVICE_UNAVAILABLE,
    {**_TEXT, "Retry-After": "1"},
    b"starting: the probes are being loaded, or put into the processes that are there\n",
)
_NO_PAGES: Answer = (
    http.HTTPStatus.NOT_FOUND,
    _TEXT,
    b"this agent runs with --no-page: it has /metrics and /healthz\n",
)


class Server:
    """Listens from the moment it is made; answers once it runs."""

    def __init__(
        self, address: Address, guard: Guard = OPEN, *, page_every_s: float | None = None
    ) -> None:
        """Bind *address*, for those whom *guard* lets in; raises CannotListen.

        The page refreshes every *page_every_s*.
        """
        self._listener = Listener(address, guard)
        self._page_every_s = page_every_s
        self._stopped = threading.Event()
        self._looking: threading.Thread | None = None
        self._routes: dict[str, Route] = dict.fromkeys(_PATHS, lambda _: _STARTING)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._listener.url

    def answer(self) -> None:
        """Answer until `stop` is called from another thread: 503 until there is a source."""
        try:
            self._listener.run(self._routes)
        finally:
            self._stopped.set()
            if self._looking is not None:
                self._looking.join(_PATIENCE_S)

    def show(  # noqa: PLR0913 - most have defaults
        self,
        source: Source,
        health: Pulse | Health,
        book: BlockingSeries | None = None,
        logs: Logs | None = None,
        mode: Mode = Mode.AUTO,
        *,
        has_pages: bool = True,
        past: Past[GilObservation] | None = None,
        captures: Captured = lambda: None,
        moments: Moments = NO_MOMENTS,
        kept: KeptCounters | None = None,
    ) -> AgentCollector:
        """Serve *source* and *logs* from now on; returns what makes the metrics of them.

        *book* says whose the series are, and how many pairs, and places of each log, have their
        own. Unless it *has_pages*, metrics and health are all that there is. What is seen is
        entered in *past*. The page shows the last of *captures*; its reports say how closely
        processes are observed, *mode*, and when one has waited most since a time, *moments*.
        Counters continue those of *kept*.
        """
        book = BlockingSeries() if book is None else book
        targets = Targets(book, kept)
        source = replace(source, observe=targets.noting(source.observe))
        watched = SourceHistory(source, logs, past=past)
        if has_pages or past is not None:
            # So a scrape is in the history, and what the page shows too.
            source, logs_of = replace(source, observe=watched.observe), watched.logs
            health = Health(health, self._keep_up(watched, book))
        else:
            logs_of = logs or tuple
        sites = ConflictSeries(book.limit_of_logs)
        collector = AgentCollector(source, book, logs_of, sites, targets)
        pages: Mapping[str, Route] = dict.fromkeys(_PAGES, lambda _: _NO_PAGES)
        if has_pages:
            # Who wants none is not to pay the megabyte that they take.
            from gilscope.web.pages import Pages  # noqa: PLC0415 - see above

            shown = Pages(
                source, watched, collector, book, logs is not None, mode, captures, moments
            )
            pages = shown.routes(self._page_every_s)
        self._routes |= {
            **pages,
            "/healthz": lambda _: _health(health),
            "/metrics": lambda request: _metrics(collector, request),
        }
        return collector

    def _keep_up(self, watched: SourceHistory, book: BlockingSeries) -> Pulse:
        looking = Pulse("keeps what was seen in the last minutes", _HISTORY_STALE_S)
        self._looking = named_thread("page", watched.keep_up, book, self._stopped, looking.beat)
        self._looking.start()
        return looking

    def run(
        self,
        source: Source,
        health: Pulse | Health,
        book: BlockingSeries | None = None,
        logs: Logs | None = None,
    ) -> None:
        """Do both: `show` and `answer`."""
        self.show(source, health, book, logs)
        self.answer()

    def stop(self) -> None:
        """End `run`, which may come later."""
        self._listener.stop()

    def close(self) -> None:
        """Give up the address; `run` must have ended."""
        self._listener.close()


def _metrics(collector: AgentCollector, request: Request) -> Answer:
    kind = negotiate(request.accept)
    answer = http.HTTPStatus.OK, {"Content-Type": kind}, encode(collector.collect(), kind)
    return compressed(answer, request.accept_encoding)


def _health(health: Pulse | Health) -> Answer:
    complaint = health.complaint
    if not complaint:
        return http.HTTPStatus.OK, _TEXT, b"ok\n"
    return http.HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, complaint.encode()
