"""What is sent to a receiver of OTLP, and what is said where it is not taken."""

import logging
import threading

import pytest

from gilscope.web.otlp.push import Push
from support.ports import free_port
from support.web.otlp_receiver import receiving


def _made() -> bytes:
    return b"{}"


def test_figures_arrive() -> None:
    """
    At the path that was given, compressed, with the headers that were given.
    """
    taken: list[bool] = []
    with receiving() as receiver:
        push = Push(
            f"{receiver.url}/v1/metrics",
            {"X-Scope-OrgID": "ops"},
            _made,
            lambda: taken.append(True),
        )
        assert push.once()
        received = receiver.received.get()

    assert ("/v1/metrics", "ops", "application/json", "gzip") == (
        received.path,
        received.headers["x-scope-orgid"],
        received.headers["content-type"],
        received.headers["content-encoding"],
    )
    assert (b"{}", [True]) == (received.body, taken)


def test_nothing_to_send_is_not_sent() -> None:
    """
    And is no failure.
    """
    taken: list[bool] = []
    with receiving() as receiver:
        assert Push(receiver.url, {}, lambda: None, lambda: taken.append(True)).once()

        assert (0, []) == (receiver.received.qsize(), taken)


def test_what_is_not_taken_is_not_said_to_be() -> None:
    """
    Who makes it may then send it again.
    """
    taken: list[bool] = []
    with receiving() as receiver:
        receiver.answer = (503, b"full")
        Push(receiver.url, {}, _made, lambda: taken.append(True)).once()

    assert [] == taken


def test_it_is_said_once_that_figures_are_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    """
    With the reason, and again when they are.
    """
    caplog.set_level(logging.INFO)
    with receiving() as receiver:
        push = Push(receiver.url, {}, _made)
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
        push = Push(receiver.url, {}, _made)
        for answer in (b"", b"\n\x01", b"[]", b'{"partialSuccess":{}}', b'{"partialSuccess":[]}'):
            receiver.answer = (200, answer)
            assert push.once()
        receiver.answer = (
            200,
            b'{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}',
        )
        assert not push.once()

    assert caplog.records[-1].getMessage().endswith("it has rejected 3 of them: too old")


def test_nobody_there_is_no_end(caplog: pytest.LogCaptureFixture) -> None:
    """
    The reason is the system's.
    """
    assert not Push(f"http://127.0.0.1:{free_port()}", {}, _made).once()
    assert "Connection refused" in caplog.text


def test_it_goes_on_whatever_fails(caplog: pytest.LogCaptureFixture) -> None:
    """
    Figures that cannot be made now may be made later, until it is to stop.
    """
    stopped, calls = threading.Event(), []

    def make() -> bytes:
        calls.append(1)
        if len(calls) == 1:
            raise OSError(9, "Bad file descriptor")
        stopped.set()
        return _made()

    with receiving() as receiver:
        Push(receiver.url, {}, make).run(0.001, stopped)
        assert 1 == receiver.received.qsize()

    assert "could not make the figures for OTLP this time" in caplog.text
