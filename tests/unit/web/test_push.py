"""What is sent to a receiver of OTLP, and what is said where it is not taken."""

import logging
import threading

import pytest

from gilscope.exporter.samples import Series
from gilscope.metrics import table as metrics
from gilscope.web.push import Push
from support.ports import free_port
from support.web.otlp_receiver import metrics_in, receiving

_BEGAN_NS = 1_800_000_000_000_000_000


def _series() -> list[Series]:
    series = Series(metrics.AGENT_TRAPS)
    series.add((), 5000)
    return [series]


def test_figures_arrive() -> None:
    """
    At the path that was given, compressed, with the headers that were given.
    """
    with receiving() as receiver:
        push = Push(f"{receiver.url}/v1/metrics", {"X-Scope-OrgID": "ops"}, _series, _BEGAN_NS)
        assert push.once()
        received = receiver.received.get()

    assert ("/v1/metrics", "ops", "application/json", "gzip") == (
        received.path,
        received.headers["x-scope-orgid"],
        received.headers["content-type"],
        received.headers["content-encoding"],
    )
    (metric,) = metrics_in(received.request).values()
    (point,) = metric.sum.data_points
    assert ("gilscope_agent_traps_total", 5000.0) == (metric.name, point.as_double)
    assert _BEGAN_NS == point.start_time_unix_nano


def test_it_is_said_once_that_figures_are_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    """
    With the reason, and again when they are.
    """
    caplog.set_level(logging.INFO)
    with receiving() as receiver:
        push = Push(receiver.url, {}, _series, _BEGAN_NS)
        receiver.answer = (503, b"full\x1b[31m\n")
        assert [False, False] == [push.once(), push.once()]
        receiver.answer = (200, b"{}")
        assert [True, True] == [push.once(), push.once()]

    assert [
        f"{receiver.url} does not take OTLP: 503 full[31m",
        f"{receiver.url} takes OTLP again, after 2 failures",
    ] == [record.getMessage() for record in caplog.records]


def test_points_that_are_rejected_are_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """
    The receiver says how many and why; other answers are none.
    """
    with receiving() as receiver:
        push = Push(receiver.url, {}, _series, _BEGAN_NS)
        for answer in (b"", b"\n\x01", b"[]", b'{"partialSuccess":{}}', b'{"partialSuccess":[]}'):
            receiver.answer = (200, answer)
            assert push.once()
        receiver.answer = (
            200,
            b'{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}',
        )
        assert not push.once()

    assert caplog.records[-1].getMessage().endswith("it has rejected 3 points: too old")


def test_nobody_there_is_no_end(caplog: pytest.LogCaptureFixture) -> None:
    """
    The reason is the system's.
    """
    assert not Push(f"http://127.0.0.1:{free_port()}", {}, _series, _BEGAN_NS).once()
    assert "Connection refused" in caplog.text


def test_it_goes_on_whatever_fails(caplog: pytest.LogCaptureFixture) -> None:
    """
    Figures that cannot be made now may be made later, until it is to stop.
    """
    stopped, calls = threading.Event(), []

    def collect() -> list[Series]:
        calls.append(1)
        if len(calls) == 1:
            raise OSError(9, "Bad file descriptor")
        stopped.set()
        return _series()

    with receiving() as receiver:
        Push(receiver.url, {}, collect, _BEGAN_NS).run(0.001, stopped)
        assert 1 == receiver.received.qsize()

    assert "could not make the figures for OTLP this time" in caplog.text
