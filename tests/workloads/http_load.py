"""Clients that keep an HTTP server on the loopback busy, and time its answers.

Known answer: each command sends --requests requests over --concurrency connections, which stay
open: each connection sends its next request when it has the answer to the last one. Says ready
when all are connected, then one JSON line a command: `requests_per_s`, `p50_ns`, `p99_ns` and
`max_ns` from a request's first byte out to its answer's last byte in, and `failures`, answers that
were not 200. Ends with stdin. One thread serves all connections, so the clients do not wait for
each other's GIL. For a single measurement: `echo | http_load.py --port PORT`.
"""

import argparse
import os
import selectors
import socket
from typing import Iterator

from handshake import next_command, ready, say
from old_pythons import perf_counter_ns

REQUEST = b"GET /orders HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
PATIENCE_S = 60.0


class Connection:
    """One client."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._length = 0
        self._sent_ns = 0

    def ask(self) -> None:
        """Send the next request, which fits into the socket's buffer."""
        self._received, self._length = b"", 0
        self._sent_ns = perf_counter_ns()
        self.socket.sendall(REQUEST)

    def read(self) -> "tuple[int, bool] | None":
        """Return latency and success if the answer is complete."""
        received = self.socket.recv(1 << 16)
        if not received:
            raise SystemExit("the server closed a connection")
        self._received += received
        if not self._length:
            self._length = _length_of(self._received)
        if not self._length or len(self._received) < self._length:
            return None
        return perf_counter_ns() - self._sent_ns, self._received.startswith(b"HTTP/1.1 200 ")


def _length_of(answer: bytes) -> int:
    """Return the length of the whole answer, 0 while its header is not complete."""
    header, end, _ = answer.partition(b"\r\n\r\n")
    if not end:
        return 0
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return len(header) + len(end) + int(value)
    raise SystemExit("an answer without its length")


class Load:
    """All clients."""

    def __init__(self, port: int, concurrency: int) -> None:
        self._connections = [Connection(port) for _ in range(concurrency)]
        self._selector = selectors.DefaultSelector()
        for connection in self._connections:
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def run(self, requests: int) -> "Iterator[tuple[int, bool]]":
        """Yield latency and success of each request."""
        begun = min(requests, len(self._connections))
        for connection in self._connections[:begun]:
            connection.ask()
        ended = 0
        while ended < requests:
            events = self._selector.select(PATIENCE_S)
            if not events:
                raise SystemExit("no answer within %d s" % PATIENCE_S)
            for key, _ in events:
                answer = key.data.read()
                if answer is None:
                    continue
                ended += 1
                if begun < requests:
                    begun += 1
                    key.data.ask()
                yield answer


def measure(load: "Load", requests: int) -> "dict[str, object]":
    """Send the requests and return what they took."""
    began_ns = perf_counter_ns()
    answers = list(load.run(requests))
    wall_ns = perf_counter_ns() - began_ns
    latency_ns = sorted(ns for ns, _ in answers)
    return {
        "requests": requests,
        "failures": sum(not is_good for _, is_good in answers),
        "wall_ns": wall_ns,
        "requests_per_s": requests / wall_ns * 1e9,
        "p50_ns": latency_ns[(requests - 1) // 2],
        "p99_ns": latency_ns[(requests - 1) * 99 // 100],
        "max_ns": latency_ns[-1],
    }


def main() -> None:
    """Measure once a command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=8)
    options = parser.parse_args()
    load = Load(options.port, options.concurrency)
    ready(concurrency=options.concurrency)
    while next_command() is not None:
        say({"done": True, **measure(load, options.requests)})
    os._exit(0)


if __name__ == "__main__":
    main()
