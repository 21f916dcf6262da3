"""The HTTP side of ``serve``: metrics, health and the landing page."""

import http
import logging
import os
import select
import socket
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gilscope.blame_book import DEFAULT_PAIRS, BlameBook
from gilscope.collectors.agent import AgentCollector, Logs, Source
from gilscope.collectors.exposition import encode, negotiate
from gilscope.errors import CannotListen
from gilscope.reports import page
from gilscope.reports.agent_section import SelfPortrait
from gilscope.reports.page_blame import MOST_PAIRS
from gilscope.stm.site_series import SiteBook

__all__ = ["Address", "Pulse", "Server", "parse_address"]

_log = logging.getLogger(__name__)

_STALE_S = 10.0
_LAST_PORT = 65535

Address = tuple[str, int]


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

    def __init__(self, address: Address) -> None:
        """Bind *address*; raises CannotListen."""
        host, port = address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        kind = type("_Listener", (_Listener,), {"address_family": family})
        try:
            self._listener: _Listener = kind(address, _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CannotListen(f"cannot listen on {host or '*'}:{port}: {reason}") from error
        self._stopped = os.eventfd(0)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._listener.server_address[:2]
        shown = str(host) if ":" not in str(host) else f"[{host!s}]"
        return f"http://{shown}:{port}/"

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
        book = BlameBook(pairs)
        collector = AgentCollector(source, book, logs or tuple, SiteBook(pairs))
        self._listener.routes = {
            "/": lambda _: _page(source, collector, book, logs),
            "/healthz": lambda _: _health(pulse),
            "/metrics": lambda accept: _metrics(collector, accept),
        }
        # `serve_forever` looks again and again whether it is to end.
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._stopped, select.POLLIN)
        while self._stopped not in {fd for fd, _ in poll.poll()}:
            self._listener.handle_request()

    def stop(self) -> None:
        """End `run`, which may come later."""
        os.eventfd_write(self._stopped, 1)

    def close(self) -> None:
        """Give up the address; `run` must have ended."""
        self._listener.server_close()
        os.close(self._stopped)


_Answer = tuple[http.HTTPStatus, str, bytes]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    timeout = 0
    """So long `handle_request` waits for one: it is called when there is one."""
    routes: dict[str, Callable[[str], _Answer]]


class _Handler(BaseHTTPRequestHandler):
    server: _Listener
    server_version = "gilscope"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        route = self.server.routes.get(self.path.partition("?")[0])
        if route is None:
            status, kind, body = http.HTTPStatus.NOT_FOUND, "text/plain", b"no such page\n"
        else:
            status, kind, body = _answered(route, self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the base class looks for this name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
        _log.debug(format, *args)


def _answered(route: Callable[[str], _Answer], accept: str) -> _Answer:
    try:
        return route(accept)
    except Exception:  # noqa: BLE001 - a client gets an answer, whatever happens
        _log.exception("could not answer a request")
        status = http.HTTPStatus.INTERNAL_SERVER_ERROR
        return status, "text/plain; charset=utf-8", b"internal error; the log says more\n"


def _metrics(collector: AgentCollector, accept: str) -> _Answer:
    kind = negotiate(accept)
    return http.HTTPStatus.OK, kind, encode(collector.collect(), kind)


def _health(pulse: Pulse) -> _Answer:
    if pulse.is_alive:
        return http.HTTPStatus.OK, "text/plain; charset=utf-8", b"ok\n"
    body = b"the loop that looks after the traced processes has stopped\n"
    return http.HTTPStatus.SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", body


def _page(source: Source, collector: AgentCollector, book: BlameBook, logs: Logs | None) -> _Answer:
    with book.turn:
        observations = source.observe()
        lately = book.lately(observations, MOST_PAIRS)
    portrait = SelfPortrait(source.agent_state(), collector.last_scrape_ns)
    html = page.render(
        observations,
        source.refusals(),
        portrait,
        lately,
        page.Transactions(source.observe_transactions(), None if logs is None else logs()),
    )
    return http.HTTPStatus.OK, "text/html; charset=utf-8", html.encode()
