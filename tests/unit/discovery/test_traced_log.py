"""What is traced is told, but not without end."""

import logging

import pytest

from gilscope.discovery.traced_log import TracedLog
from support.recordings.gil import PROCESS


def test_too_many_are_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    Thirty lines a minute, then a number with the first of the next minute.
    """
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    caplog.set_level(logging.INFO)
    told = TracedLog()
    for _ in range(35):
        told.add(PROCESS)
    clock[0] += 60.0
    told.add(PROCESS)

    line = f"traced: {PROCESS.name}, pid {PROCESS.pid}"
    more = "traced: 5 more since the last one that is named here"
    assert [*[line] * 30, more, line] == caplog.messages


def test_what_is_not_named_can_be_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """
    When all have been found that were there at the start; nothing is told twice, or of none.
    """
    caplog.set_level(logging.INFO)
    told = TracedLog()
    for _ in range(33):
        told.add(PROCESS)
    told.tell_rest()
    told.tell_rest()

    assert "traced: 3 more since the last one that is named here" == caplog.messages[-1]
    assert 31 == len(caplog.messages)
