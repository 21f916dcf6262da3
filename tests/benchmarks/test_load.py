"""The load generator: times are from when a request was due, and percentiles are exact."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from bench.experiments.load import at_share, send

_STALL_NS = 200_000_000
_RATE = 100
_STEP_NS = 10_000_000


@contextmanager
def _server(stall_ns: int) -> Iterator[int]:
    """Answer on one connection, the first time after *stall_ns*, and give the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                until_ns = None
                while connection.recv(65536):
                    until_ns = until_ns or time.monotonic_ns() + stall_ns
                    while time.monotonic_ns() < until_ns:
                        time.sleep((until_ns - time.monotonic_ns()) / 1e9 + 1e-4)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_a_late_request_counts_from_when_it_was_due() -> None:
    """
    One connection stalls: every request that was due meanwhile is late by what was left of it.
    """
    with _server(_STALL_NS) as port:
        load = send(port, "/", _RATE, 0.2, 1)

    longest = sorted(load.due_ns, reverse=True)
    assert (20, 0) == (len(longest), load.failed)
    for number, took_ns in enumerate(longest):
        assert took_ns >= _STALL_NS - number * _STEP_NS
    assert sum(load.sent_ns) < sum(load.due_ns)


def test_without_a_rate_answers_set_the_pace() -> None:
    """
    Then a request is due when it is sent.
    """
    with _server(0) as port:
        load = send(port, "/", 0, 0.05, 1)

    assert load.due_ns
    assert all(due >= sent for due, sent in zip(load.due_ns, load.sent_ns, strict=True))


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.5, 500), (0.99, 990), (0.9991, 1000), (1.0, 1000)]
)
def test_percentiles_are_exact(share: float, expected: int) -> None:
    """
    The least value within which so many are.
    """
    assert expected == at_share(range(1, 1001), share)
