"""The HTTP side of ``serve``: metrics, health and the landing page."""

import http
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from markupsafe import Markup

from gilscope.exporter.collector import AgentCollector
from gilscope.exporter.exposition import encode, negotiate
from gilscope.exporter.source import Logs, Source
from gilscope.model.kinds import Mode
from gilscope.model.timeline import Moment
from gilscope.series.blocking import BlockingSeries
from gilscope.series.conflicts import ConflictSeries
from gilscope.series.past import Past
from gilscope.web.captures import Captured, capture_answer
from gilscope.web.guard import OPEN, Guard
from gilscope.web.listener import Address, Answer, Listener, Route
from gilscope.web.page import page
from gilscope.web.page.agent import SelfPortrait
from gilscope.web.page.blocking import MOST_PAIRS
from gilscope.web.report import Reporter
from gilscope.web.source_history import SourceHistory

__all__ = ["Address", "Health", "Pulse", "Server", "parse_address"]

_STALE_S = 10.0
_PAGE_STALE_S = 20.0
_PATIENCE_S = 0.5
_PATHS = ("/", "/live", "/healthz", "/metrics", "/report", "/capture")
_LAST_PORT = 65535
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}
_STARTING: Answer = (
    http.HTTPStatus.SERVICE_UNAVAILABLE,
    {**_TEXT, "Retry-After": "1"},
    b"starting: the probes are being loaded, or put into the processes that are there\n",
)
_HTML = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": page.POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


class Pulse:
    """Tells whether a loop is alive."""

    def __init__(
        self, work: str = "looks after the traced processes", stale_s: float = _STALE_S
    ) -> None:
        """Begin for the loop that does *work*, which iterates within *stale_s* if it is alive."""
        self._work = work
        self._stale_s = stale_s
        self._beat_s = time.monotonic()

    def beat(self) -> None:
        """Note that the loop has finished an iteration."""
        self._beat_s = time.monotonic()

    @property
    def is_alive(self) -> bool:
        """Whether it finished an iteration lately."""
        return time.monotonic() - self._beat_s < self._stale_s

    @property
    def complaint(self) -> str:
        """Return what is wrong, in words; empty: nothing."""
        return "" if self.is_alive else f"the loop that {self._work} has stopped\n"


class Health:
    """Tells whether all loops that do work are alive."""

    def __init__(self, *pulses: "Pulse | Health") -> None:
        self._pulses = list(pulses)

    def watch(self, pulse: "Pulse | Health") -> None:
        """Include the loop of *pulse*."""
        self._pulses.append(pulse)

    @property
    def complaint(self) -> str:
        """Return what is wrong, a line for each loop; empty: nothing."""
        return "".join(pulse.complaint for pulse in self._pulses)


def parse_address(text: str) -> Address:
    """Return host and port of ``HOST:PORT``, ``[V6]:PORT`` or ``:PORT``; raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > _LAST_PORT:
        raise ValueError(f"{text!r} is not HOST:PORT")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: write an IPv6 address in brackets, [::1]:9845")
    return host, int(port)


class Server:
    """Listens from the moment it is made; answers once it runs."""

    def __init__(
        self, address: Address, guard: Guard = OPEN, *, page_every_s: float = page.EVERY_S
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
        past: Past | None = None,
        captures: Captured = lambda: None,
        moment: Callable[[int, int], Moment | None] = lambda _pid, _since_ns: None,
    ) -> AgentCollector:
        """Serve *source* and *logs* from now on, and the last of *captures*.

        Returns what makes the metrics of them.

        *book* says how many pairs of each process, and places of each log, have series of their
        own, *mode* how closely processes are observed. What is seen is entered in *past*;
        *moment* tells when a process has waited most since a time.
        """
        watched = SourceHistory(source, logs, past=past)
        book = BlockingSeries() if book is None else book
        # So a scrape is in the history, and what the page shows too.
        source = replace(source, observe=watched.observe)
        collector = AgentCollector(source, book, watched.logs, ConflictSeries(book.limit))
        view = _View(
            source, watched, collector, book, logs is not None, self._page_every_s, captures
        )
        reporter = Reporter(
            watched.gils,
            watched.past,
            source.refusals,
            mode=mode,
            application=book.application,
            moment=moment,
        )
        looking = Pulse("keeps the curves of the page", _PAGE_STALE_S)
        self._looking = threading.Thread(
            target=watched.keep_up, args=(book, self._stopped, looking.beat), daemon=True
        )
        self._looking.start()
        self._routes |= {
            "/": lambda _: view.page(),
            "/live": lambda _: view.fragment(),
            "/healthz": lambda _: _health(Health(health, looking)),
            "/metrics": lambda request: _metrics(collector, request.accept),
            "/report": lambda request: reporter.answer(request.query),
            "/capture": lambda request: capture_answer(request.query, captures()),
        }
        return collector

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


def _metrics(collector: AgentCollector, accept: str) -> Answer:
    kind = negotiate(accept)
    return http.HTTPStatus.OK, {"Content-Type": kind}, encode(collector.collect(), kind)


def _health(health: Health) -> Answer:
    complaint = health.complaint
    if not complaint:
        return http.HTTPStatus.OK, _TEXT, b"ok\n"
    return http.HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, complaint.encode()


@dataclass(frozen=True, slots=True)
class _View:
    """What the page shows."""

    source: Source
    watched: SourceHistory
    collector: AgentCollector
    book: BlockingSeries
    shows_logs: bool
    every_s: float
    captures: Captured

    def page(self) -> Answer:
        return http.HTTPStatus.OK, _HTML, page.document(self._main(), self.every_s).encode()

    def fragment(self) -> Answer:
        return http.HTTPStatus.OK, _HTML, self._main().encode()

    def _main(self) -> Markup:
        watched = self.watched
        with self.book.turn:
            seen = self.source.observe()
            observations = [each.gil for each in seen if each.gil is not None]
            lately = self.book.lately(observations, MOST_PAIRS)
        live = [each.transactions for each in seen if each.transactions is not None]
        logs = watched.logs()
        figures = page.Figures(
            observations,
            self.source.refusals(),
            SelfPortrait(self.source.agent_state(), self.collector.last_scrape_ns),
            lately,
            page.Transactions(
                live,
                logs if self.shows_logs else None,
                watched.stm_curves(live),
                watched.log_curves(logs),
            ),
            watched.curves(observations),
            self.captures() or (),
            self.book.application,
        )
        return page.main_part(figures)
