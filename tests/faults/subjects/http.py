"""Clients that are slow, rude, broken or many."""

import contextlib
import http.client
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.bench import Bench
from faults.registry import Verdict, fault
from faults.targets import Target
from support.certificates import Authority
from support.commands.gilscope import eventually
from support.commands.serve import Service

_ANSWER_S = 10.0


@contextmanager
def _served(bench: Bench, *arguments: str) -> Iterator[tuple[Service, Target]]:
    """Serve a contending target; afterwards all is answered, and no more is held than before."""
    target = bench.target()
    service = bench.serve("-p", str(target.pid), *arguments)
    bench.sees(service, target)
    with bench.steady(service):
        yield service, target
        _is_answered(bench, service)
    bench.counts_rightly(service, target)


def _is_answered(bench: Bench, service: Service) -> None:
    began_s = time.monotonic()
    bench.equal(Verdict.HANGS, 200, service.get("/metrics").status, "/metrics")
    taken_s = time.monotonic() - began_s
    bench.expect(Verdict.HANGS, taken_s < _ANSWER_S, f"a scrape takes {taken_s:.1f} s")


def _connected(service: Service) -> socket.socket:
    return socket.create_connection((service.host, service.port), timeout=30)


def _close_all(connections: list[socket.socket]) -> None:
    for connection in connections:
        connection.close()


@fault(
    "slow_readers", "50 scrapers that read a byte a second: others are answered at once", half=True
)
def _slow_readers(bench: Bench) -> None:
    with _served(bench) as (service, target):
        readers = []
        for _ in bench.times(10, 50):
            reader = _connected(service)
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            reader.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            readers.append(reader)
        for _ in bench.times(2, 20):
            for reader in readers:
                with contextlib.suppress(OSError):
                    reader.recv(1)
            _is_answered(bench, service)
            target.advances(100 if bench.is_half else 5000)
        _close_all(readers)


@fault(
    "half_open",
    "500 connections that say nothing, then half a line: scrapes are answered",
    half=True,
)
def _half_open(bench: Bench) -> None:
    with _served(bench) as (service, _):
        connections = []
        for _ in bench.times(60, 500):
            with contextlib.suppress(OSError):
                connections.append(_connected(service))
        _is_answered(bench, service)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.sendall(b"GET /met")
        _is_answered(bench, service)
        _close_all(connections)


@fault("slowloris", "a byte of a request every few seconds, 20 times: cut after a bounded time")
def _slowloris(bench: Bench) -> None:
    with _served(bench) as (service, target):
        connections = [_connected(service) for _ in bench.times(3, 20)]
        request = iter(b"GET /metrics HTTP/1.1\r\nX-Long: " + b"a" * 1000)

        def are_cut() -> bool:
            byte = bytes([next(request)])
            for connection in list(connections):
                try:
                    connection.sendall(byte)
                    connection.settimeout(0.01)
                    if not connection.recv(100):
                        connections.remove(connection)
                except TimeoutError:
                    continue
                except OSError:
                    connections.remove(connection)
            target.advances(2000)
            return not connections

        eventually(are_cut, within_s=180)


@fault("port_scan", "2,000 connections opened and closed at once, half of them by RST")
def _port_scan(bench: Bench) -> None:
    with _served(bench) as (service, _):
        for number in bench.times(200, 2000):
            with contextlib.suppress(OSError):
                connection = _connected(service)
                if number % 2:
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.close()


@fault("many_scrapes", "a thousand scrapes as fast as they come: right answers, target unharmed")
def _many_scrapes(bench: Bench) -> None:
    with _served(bench) as (service, target):
        before: dict[str, float] = {}
        for _ in bench.times(30, 500):
            scrape = service.scrape()
            counters = scrape.counters()
            fell = [name for name, value in before.items() if counters.get(name, value) < value]
            bench.equal(Verdict.WRONG_NUMBER, [], fell[:3], "counters that ran back")
            before = counters
            target.advances()


_ODD = (
    b"",
    b"\r\n\r\n",
    b"\0" * 500,
    b"GET\r\n\r\n",
    b"GET /metrics\r\n\r\n",
    b"GET /metrics HTTP/0.9\r\n\r\n",
    b"GET /metrics HTTP/9.9\r\n\r\n",
    b"GET /metrics HTTP/-1\r\n\r\n",
    b"GET /metrics HTTP/1.1 x y\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
    b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"DELETE /metrics HTTP/1.1\r\n\r\n",
    b"CONNECT evil:443 HTTP/1.1\r\n\r\n",
    b"GET http://evil/metrics HTTP/1.1\r\n\r\n",
    b"GET //evil/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\n\r\n",
    b"GET /%00 HTTP/1.1\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
    b"GET /metrics?" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n",
    b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nAccept: \xff\r\nAccept-Encoding: gzip;q=x\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nAuthorization: Basic \xff===\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nConnection: keep-alive\r\n\r\n" * 20,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 300,
)


@fault(
    "odd_requests", "26 odd requests: an answer of 2xx or 4xx, or the end, and no words", half=True
)
def _odd_requests(bench: Bench) -> None:
    with _served(bench) as (service, _):
        for request in _ODD:
            with contextlib.suppress(OSError), _connected(service) as connection:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                status = connection.recv(12)
                is_fine = not status.startswith(b"HTTP/1.") or status[9:10] in (b"2", b"3", b"4")
                is_fine |= status[9:12] in (b"501", b"505")
                words = f"{request[:40]!r} is answered {status!r}"
                bench.expect(Verdict.UNCLEAR_MESSAGE, is_fine, words)


@fault(
    "page_storm", "the page asked for 200 times by a browser that breaks off, HEAD, gzip: no leak"
)
def _page_storm(bench: Bench) -> None:
    with _served(bench) as (service, _):
        for number in bench.times(40, 200):
            path = ("/", "/live", "/metrics")[number % 3]
            connection = http.client.HTTPConnection(service.host, service.port, timeout=30)
            connection.request(
                ("GET", "HEAD")[number % 2], path, headers={"Accept-Encoding": "gzip"}
            )
            if number % 4:
                connection.getresponse().read(10)
            connection.close()


@fault(
    "tls_port", "plain HTTP and garbage at a TLS port, clients that break off: others are served"
)
def _tls_port(bench: Bench) -> None:
    authority = Authority.made(bench.folder)
    pair = authority.pair("server", "IP:127.0.0.1")
    config = bench.folder / "web.yml"
    config.write_text(f"tls_server_config:\n  cert_file: {pair.cert}\n  key_file: {pair.key}\n")
    target = bench.target()
    service = bench.serve("-p", str(target.pid), "--web.config.file", str(config))
    for number in bench.times(12, 60):
        with contextlib.suppress(OSError), _connected(service) as connection:
            connection.sendall((b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"\0" * 99)[number % 3])
            connection.settimeout(0.2)
            connection.recv(10)
    context = ssl.create_default_context(cafile=str(authority.cert))
    client = http.client.HTTPSConnection(service.host, service.port, timeout=30, context=context)
    client.request("GET", "/metrics")
    bench.equal(Verdict.HANGS, 200, client.getresponse().status, "/metrics over TLS")
    client.close()


@fault("connections_and_few_descriptors", "128 descriptors and 60 connections: answers afterwards")
def _connections_and_few_descriptors(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid), wrapper=("prlimit", "--nofile=200"))
    bench.sees(service, target)
    connections = []
    for _ in range(200):
        with contextlib.suppress(OSError):
            connections.append(_connected(service))
    before_ns = _cpu_ns(service.command.pid)
    began_s = time.monotonic()
    target.advances(20_000)
    share = (_cpu_ns(service.command.pid) - before_ns) / 1e9 / (time.monotonic() - began_s)
    bench.expect(Verdict.HANGS, share < 0.5, f"uses {share:.0%} of a core meanwhile")
    _close_all(connections)
    eventually(lambda: _gets(service))
    bench.counts_rightly(service, target)


def _gets(service: Service) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return service.get("/metrics").status == http.HTTPStatus.OK
    return False


def _cpu_ns(pid: int) -> int:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
