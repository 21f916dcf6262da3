"""Listens, and answers requests by what stands under their path."""

import contextlib
import http
import logging
import os
import select
import socket
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from gilscope.errors import CannotListen
from gilscope.text.printable import printable
from gilscope.values import dataclass
from gilscope.web.address import Address
from gilscope.web.connections import Connections
from gilscope.web.guard import OPEN, Busy, Guard, Rules
from gilscope.web.hosts import is_own_name, listens_on_loopback

__all__ = ["Answer", "Listener", "Request", "Route"]

_log = logging.getLogger(__name__)

_PATIENCE_S = 10
"""Timeout for the next bytes of a client."""
_FAREWELL_S, _MOST_READS, _READ_BYTES = 1, 16, 4096
_LOOK_MS = 1000
"""How often connections are checked for those that have been there for too long."""
_TEXT: Final = "text/plain; charset=utf-8"

Answer = tuple[http.HTTPStatus, Mapping[str, str], bytes]
"""With its headers, of which ``Content-Type`` is one."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client wants of a path."""

    accept: str = ""
    """The types that it accepts."""
    accept_encoding: str = ""
    """In what forms it can read them."""
    query: str = ""
    """What stands behind the question mark."""


Route = Callable[[Request], Answer]
"""Makes the answer to a request."""


class Listener:
    """Listens from the moment it is made; answers while it runs.

    Each connection has a thread and takes one request. Clients that are slow hold up nobody else,
    and there are only so many at a time.
    """

    def __init__(self, address: Address, guard: Guard) -> None:
        """Bind *address*, for those whom *guard* lets in; raises CannotListen."""
        host, port = address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        kind = type("_Threads", (_Threads,), {"address_family": family})
        try:
            self._threads: _Threads = kind(address, _Handler)
        except (OSError, OverflowError, TypeError, ValueError) as error:
            # The last two: it cannot even be the name of a host.
            reason = getattr(error, "strerror", None) or str(error)
            named = printable(host) or "*"
            raise CannotListen(f"cannot listen on {named}:{port}: {reason}") from error
        self._threads.guard = guard
        # Who has a password, or a certificate, is no browser that was led here.
        self._threads.own_name = host if guard is OPEN and listens_on_loopback(host) else None
        self._stopped = os.eventfd(0)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._threads.server_address[:2]
        shown = str(host) if ":" not in str(host) else f"[{host!s}]"
        return f"{self._threads.guard.scheme}://{shown}:{port}/"

    def run(self, routes: Mapping[str, Route]) -> None:
        """Answer by *routes*, which are by path, until `stop` is called from another thread."""
        self._threads.routes = routes
        connections = self._threads.connections
        # `serve_forever` checks again and again whether it is to end.
        poll = select.poll()
        poll.register(self._threads, select.POLLIN)
        poll.register(self._stopped, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll(_LOOK_MS if connections else None)}
            if self._stopped in ready:
                return
            connections.end_overdue()
            if ready:
                self._threads.handle_request()

    def stop(self) -> None:
        """End `run`, which may come later."""
        os.eventfd_write(self._stopped, 1)

    def close(self) -> None:
        """Give up the address; `run` must have ended."""
        self._threads.server_close()
        # A browser keeps one that it may need, and would be answered by what has ended.
        self._threads.connections.end_all()
        os.close(self._stopped)


class _Threads(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """How many may be waiting to be accepted; beyond, a client would try again after a second."""
    timeout = 0
    """Timeout of `handle_request` for one: it is called when there is one."""
    routes: Mapping[str, Route]
    guard: Guard
    own_name: str | None
    """The host that requests must name, or another one of the loopback; None: any."""

    def __init__(self, address: Address, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.connections = Connections()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class' types
        if self.connections.add(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - likewise
        self.connections.remove(request)
        super().shutdown_request(request)

    def handle_error(self, _request: Any, client_address: Any) -> None:  # noqa: ANN401 - likewise
        # Clients go away, do not speak the language, or are not let in: no news for a log.
        _log.debug("a connection from %s has failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Threads
    server_version = "gilscope"
    sys_version = ""
    timeout = _PATIENCE_S
    _rules: Rules

    def setup(self) -> None:
        self._rules = self.server.guard.rules()
        accepted = self.request
        accepted.settimeout(self.timeout)
        try:
            self.request = self._rules.wrapped(accepted)
            self.server.connections.replace(accepted, self.request)
            self._rules.shake_hands(self.request)
            super().setup()
        except BaseException:
            _let_read(self.request)
            self.request.close()
            raise

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        # What was accepted is not what is open now, where connections are encrypted.
        self.request.close()

    def do_GET(self) -> None:
        own_name = self.server.own_name
        if own_name is not None and not is_own_name(self.headers.get("Host"), own_name):
            self._send(http.HTTPStatus.MISDIRECTED_REQUEST, _PLAIN, _OTHER_HOST)
            return
        try:
            admitted = self._rules.admits(self.headers.get("Authorization", ""))
        except Busy:
            # Not 401: the password may be right, and a browser would forget it.
            self._send(http.HTTPStatus.SERVICE_UNAVAILABLE, _LATER, b"too many guesses\n")
            return
        if not admitted:
            self._send(http.HTTPStatus.UNAUTHORIZED, _CHALLENGE, b"name and password, please\n")
            return
        path, _, query = self.path.partition("?")
        route = self.server.routes.get(path)
        if route is None:
            self._send(http.HTTPStatus.NOT_FOUND, _PLAIN, b"no such page\n")
        else:
            accept = self.headers.get("Accept", "")
            encoding = self.headers.get("Accept-Encoding", "")
            self._send(*_answered(route, Request(accept, encoding, query)))

    do_HEAD = do_GET  # noqa: N815 - the base class looks for this name

    def end_headers(self) -> None:
        for name, value in self._rules.headers.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
        _log.debug(format, *args)

    def _send(self, status: http.HTTPStatus, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            # What the user wants to be sent takes the place of what would have been sent.
            if name not in self._rules.headers:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _let_read(connection: socket.socket) -> None:
    """Give who is refused the time to read why.

    If anything were left unread when the connection is closed, it would be reset instead.
    """
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_WR)
        connection.settimeout(_FAREWELL_S)
        for _ in range(_MOST_READS):
            if not socket.socket.recv(connection, _READ_BYTES):
                break


_PLAIN = {"Content-Type": _TEXT}
_OTHER_HOST = b"this server listens on the loopback, and answers to no other name; use 127.0.0.1\n"
_LATER = {**_PLAIN, "Retry-After": "1"}
_CHALLENGE = {**_PLAIN, "WWW-Authenticate": 'Basic realm="gilscope", charset="UTF-8"'}


def _answered(route: Route, request: Request) -> Answer:
    try:
        return route(request)
    except Exception:  # noqa: BLE001 - a client gets an answer, whatever happens
        _log.exception("could not answer a request")
        status = http.HTTPStatus.INTERNAL_SERVER_ERROR
        return status, _PLAIN, b"internal error; the log says more\n"
