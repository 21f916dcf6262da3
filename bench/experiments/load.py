"""Sends HTTP requests at a fixed rate and takes the time of each from when it was due.

``load.py PORT PATH RATE SECONDS CONNECTIONS`` prints a line of JSON; a rate of 0 means as fast as
answers come, which is what the server can do at most. A generator that waits for an answer before
it sends the next request leaves out exactly the requests that would have waited: here a request
that could not be sent when it was due is late by so much, and the uncorrected time, from when it
was sent, stands beside it.
"""

import heapq
import json
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["SHARES", "Load", "at_share", "send"]

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 1.0)
"""Of the requests, of which the longest time is told."""
_NS_PER_S = 1_000_000_000
_LARGEST = 65536
_GRACE_S = 20.0
_HEAD_END = b"\r\n\r\n"


@dataclass(slots=True)
class Load:
    """What came of it, in nanoseconds, in no order."""

    due_ns: list[int] = field(default_factory=list)
    """From when each request was due until its answer was there."""
    sent_ns: list[int] = field(default_factory=list)
    """From when it was sent: what most tools print."""
    took_ns: int = 0
    failed: int = 0


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    due_ns: int = 0
    sent_ns: int = 0
    answer: bytearray = field(default_factory=bytearray)


def at_share(ordered: Sequence[int], share: float) -> int:
    """Return the value within which *share* of the ordered values are; the nearest rank, exact."""
    rank = -int(-share * len(ordered) // 1)
    return ordered[max(1, min(rank, len(ordered))) - 1]


def send(port: int, path: str, rate: float, seconds: float, connections: int) -> Load:
    """Send requests for *seconds* and return when all answers are there.

    Raises OSError if the server cannot be reached or closes a connection.
    """
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    load, selector = Load(), selectors.DefaultSelector()
    free: deque[_Connection] = deque()
    for _ in range(connections):
        made = _Connection(socket.create_connection(("127.0.0.1", port)))
        made.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(made.socket, selectors.EVENT_READ, made)
        free.append(made)
    began_ns = time.monotonic_ns()
    count = round(rate * seconds) if rate else 0
    due = [began_ns + round(number * _NS_PER_S / rate) for number in range(count)]
    heapq.heapify(due)
    end_ns = began_ns + round(seconds * _NS_PER_S)
    try:
        while True:
            now_ns = time.monotonic_ns()
            while free and (due[0] <= now_ns if due else not rate and now_ns < end_ns):
                connection = free.popleft()
                connection.due_ns = heapq.heappop(due) if due else now_ns
                connection.sent_ns = time.monotonic_ns()
                connection.socket.sendall(request)
            if len(free) == connections and not due and (rate or now_ns >= end_ns):
                break
            if now_ns > end_ns + _GRACE_S * _NS_PER_S:
                load.failed = len(due) + connections - len(free)
                break
            wait_s = max(0.0, (due[0] - now_ns) / _NS_PER_S) if due and free else 0.1
            for key, _ in selector.select(wait_s):
                if _received(key.data, load):
                    free.append(key.data)
    finally:
        load.took_ns = time.monotonic_ns() - began_ns
        selector.close()
        for connection in free:
            connection.socket.close()
    return load


def _received(connection: _Connection, load: Load) -> bool:
    """Read what is there, and return whether the answer is whole."""
    part = connection.socket.recv(_LARGEST)
    if not part:
        raise ConnectionResetError("the server closed a connection")
    answer = connection.answer
    answer += part
    head, end, body = bytes(answer).partition(_HEAD_END)
    if not end or len(body) < _length(head):
        return False
    now_ns = time.monotonic_ns()
    if head.split(None, 2)[1] == b"200":
        load.due_ns.append(now_ns - connection.due_ns)
        load.sent_ns.append(now_ns - connection.sent_ns)
    else:
        load.failed += 1
    answer.clear()
    return True


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


def main() -> None:
    """Do what the command line says."""
    port, path, rate, seconds, connections = sys.argv[1:]
    load = send(int(port), path, float(rate), float(seconds), int(connections))
    due, sent = sorted(load.due_ns), sorted(load.sent_ns)
    told = {
        "requests": len(due),
        "failed": load.failed,
        "took_s": load.took_ns / _NS_PER_S,
        "requests_per_s": len(due) * _NS_PER_S / load.took_ns,
        "mean_ms": sum(due) / max(1, len(due)) / 1e6,
        "due_ms": [at_share(due, share) / 1e6 for share in SHARES] if due else [],
        "sent_ms": [at_share(sent, share) / 1e6 for share in SHARES] if sent else [],
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
