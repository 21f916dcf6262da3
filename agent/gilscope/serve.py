"""The HTTP side of ``serve``: metrics, health and the landing page."""

import http
import threading
import time
from dataclasses import dataclass

from gilscope.blame_book import DEFAULT_PAIRS, BlameBook
from gilscope.collectors.agent import AgentCollector, Logs, Source
from gilscope.collectors.exposition import encode, negotiate
from gilscope.reports import page
from gilscope.reports.agent_section import SelfPortrait
from gilscope.reports.page_blame import MOST_PAIRS
from gilscope.stm.site_series import SiteBook
from gilscope.watched import Watched
from gilscope.web.guard import OPEN, Guard
from gilscope.web.listener import Address, Answer, Listener

__all__ = ["Address", "Pulse", "Server", "parse_address"]

_STALE_S = 10.0
_LAST_PORT = 65535
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}
_HTML = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": page.POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


class Pulse:
    """Tells whether the loop that looks after the targets is alive."""

    def __init__(self) -> None:
        self._beat_s = time.monotonic()

    def beat(self) -> None:
        """Say that the loop has come round."""
        self._beat_s = time.monotonic()

    @property
    def is_alive(self) -> bool:
        """Whether it came round lately."""
        return time.monotonic() - self._beat_s < _STALE_S


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

        The page brings itself up to date every *page_every_s*.
        """
        self._listener = Listener(address, guard)
        self._page_every_s = page_every_s

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._listener.url

    def run(
        self,
        source: Source,
        pulse: Pulse,
        pairs: int = DEFAULT_PAIRS,
        logs: Logs | None = None,
    ) -> None:
        """Serve *source* and *logs* until `stop` is called from another thread.

        At most *pairs* pairs of each process, and places of each log, have series of their own.
        """
        watched = Watched(source, logs)
        book = BlameBook(pairs)
        collector = AgentCollector(watched, book, watched.logs, SiteBook(pairs))
        view = _View(watched, collector, book, logs is not None, self._page_every_s)
        stopped = threading.Event()
        looking = threading.Thread(target=watched.keep_up, args=(book, stopped), daemon=True)
        looking.start()
        try:
            self._listener.run(
                {
                    "/": lambda _: view.page(),
                    "/live": lambda _: view.fragment(),
                    "/healthz": lambda _: _health(pulse),
                    "/metrics": lambda accept: _metrics(collector, accept),
                }
            )
        finally:
            stopped.set()
            looking.join()

    def stop(self) -> None:
        """End `run`, which may come later."""
        self._listener.stop()

    def close(self) -> None:
        """Give up the address; `run` must have ended."""
        self._listener.close()


def _metrics(collector: AgentCollector, accept: str) -> Answer:
    kind = negotiate(accept)
    return http.HTTPStatus.OK, {"Content-Type": kind}, encode(collector.collect(), kind)


def _health(pulse: Pulse) -> Answer:
    if pulse.is_alive:
        return http.HTTPStatus.OK, _TEXT, b"ok\n"
    body = b"the loop that looks after the traced processes has stopped\n"
    return http.HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, body


@dataclass(frozen=True, slots=True)
class _View:
    """Looks at everything for a person."""

    watched: Watched
    collector: AgentCollector
    book: BlameBook
    shows_logs: bool
    every_s: float

    def page(self) -> Answer:
        return http.HTTPStatus.OK, _HTML, page.document(self._main(), self.every_s).encode()

    def fragment(self) -> Answer:
        return http.HTTPStatus.OK, _HTML, self._main().encode()

    def _main(self) -> str:
        watched = self.watched
        with self.book.turn:
            observations = watched.observe()
            lately = self.book.lately(observations, MOST_PAIRS)
        live, logs = watched.observe_transactions(), watched.logs()
        figures = page.Figures(
            observations,
            watched.refusals(),
            SelfPortrait(watched.agent_state(), self.collector.last_scrape_ns),
            lately,
            page.Transactions(
                live,
                logs if self.shows_logs else None,
                watched.stm_curves(live),
                watched.log_curves(logs),
            ),
            watched.curves(observations),
        )
        return page.main_part(figures)
