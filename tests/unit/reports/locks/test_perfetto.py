"""Waits for locks and stops of the world as Chrome trace events."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gilscope.model.locks import (
    LockKind,
    LockRecording,
    LockSpan,
    LockTimeline,
    StopCause,
    StopSpan,
)
from gilscope.reports.gil import perfetto as file_of
from gilscope.reports.locks.perfetto import LOCKS_TID, STOPS_TID
from support.recordings.gil import with_timeline
from support.recordings.locks import APPEND, HOLD, MS, RELEASE, STACKS, lock_recording

_S = 1000 * MS
_APPEND = ["append (app.py:12)", "work (app.py:22)"]
_SORT = ["sort (app.py:33)"]
_UNKNOWN = ["[unknown]"]


def _wait(from_ms: int, until_ms: int, kind: LockKind = LockKind.LOCK, tid: int = 11) -> LockSpan:
    return LockSpan(tid, kind, None, _S + from_ms * MS, _S + until_ms * MS, STACKS[APPEND])


def _stop(from_ms: int, until_ms: int, *, stands: bool) -> StopSpan:
    span = _S + from_ms * MS, _S + until_ms * MS
    return StopSpan(11, StopCause.COLLECTION, stands, *span, STACKS[RELEASE])


def _recording(
    waits: tuple[LockSpan, ...] = (), stops: tuple[StopSpan, ...] = (), dropped: int = 0
) -> LockRecording:
    return replace(lock_recording(), timeline=LockTimeline(waits, stops, dropped))


def _events(recording: LockRecording, phase: str) -> list[dict[str, Any]]:
    file = json.loads(file_of.render(locks=[recording]))
    return [event for event in file["traceEvents"] if event["ph"] == phase]


def _spans(recording: LockRecording) -> list[tuple[int, str, str, float, float]]:
    return [
        (event["tid"], event["name"], event["cat"], event["ts"], event["dur"])
        for event in _events(recording, "X")
    ]


def test_waits_are_on_a_track_of_their_thread() -> None:
    """
    By what is waited for, and whether that is contention; with both ends.
    """
    listed = replace(_wait(1, 4, LockKind.OBJECT, tid=12), type="list", released=STACKS[RELEASE])
    listed = replace(listed, held=STACKS[HOLD])
    recording = _recording((_wait(0, 2, LockKind.IDLE), listed))

    assert [
        (LOCKS_TID + 11, "idle", "idle", 0.0, 2000.0),
        (LOCKS_TID + 12, "object list", "lock", 1000.0, 3000.0),
    ] == _spans(recording)
    assert [
        {"waiter": _APPEND, "held_by": _UNKNOWN, "released_by": _UNKNOWN},
        {"waiter": _APPEND, "held_by": ["compare (app.py:41)"], "released_by": _SORT},
    ] == [event["args"] for event in _events(recording, "X")]
    assert {
        (None, "process_name"): "app.py",
        (LOCKS_TID + 11, "thread_name"): "first: locks",
        (LOCKS_TID + 12, "thread_name"): "second: locks",
    } == {
        (event.get("tid"), event["name"]): event["args"]["name"]
        for event in _events(recording, "M")
    }


def test_a_wait_continues_behind_what_has_interrupted_it() -> None:
    """
    What counts of it is as long as it should be, but seems to have begun earlier.
    """
    recording = _recording((_wait(10, 20, LockKind.WORLD_STOP), _wait(18, 25)))

    assert [(10_000.0, 10_000.0), (20_000.0, 5000.0)] == [each[3:] for each in _spans(recording)]


def test_stops_of_the_world_have_a_track() -> None:
    """
    Who has asked for them, and where; what is seen of one twice is shown once.
    """
    recording = _recording(
        stops=(_stop(1, 2, stands=False), _stop(2, 5, stands=True), _stop(3, 5, stands=True))
    )

    assert [
        (STOPS_TID, "stopping: gc", "world_stop", 1000.0, 1000.0),
        (STOPS_TID, "world stands: gc", "world_stop", 2000.0, 3000.0),
    ] == _spans(recording)
    assert {"thread": 11, "asked": _SORT} == _events(recording, "X")[0]["args"]
    assert "world stops" in [event["args"]["name"] for event in _events(recording, "M")]


def test_what_is_not_shown_is_said() -> None:
    """
    To programs as a number, to people in the picture itself.
    """
    whole = _recording(dropped=3)
    windows = replace(whole.observation, is_whole=False, invalid="its memory does not answer")
    file = json.loads(file_of.render(locks=[whole]))

    assert 3 == file["otherData"]["dropped_spans"]
    assert {"began_unseen": 1} == file["otherData"]["lost_events"]
    assert [
        "locks are not seen any more, because its memory does not answer",
        "3 more waits for locks were dropped and are not shown",
        "waits for locks were seen in windows, and are shown from these alone",
    ] == [event["name"] for event in _events(replace(whole, observation=windows), "i")]
    assert [] == _events(_recording((_wait(0, 1),)), "i")


def test_they_stand_beside_waits_for_the_gil() -> None:
    """
    In one file, in one time: that of what began first.
    """
    of_gil = with_timeline()
    early = _recording((_wait(0, 1),))
    file = json.loads(file_of.render(of_gil, locks=[early]))
    spans = [event for event in file["traceEvents"] if event["ph"] == "X"]

    assert {"wait", "hold", "holder", "lock"} == {event["cat"] for event in spans}
    assert _S == file["otherData"]["origin_ns"]
    assert min(event["ts"] for event in spans if event["cat"] == "hold") == pytest.approx(
        (of_gil.observation.since_ns - _S) / 1000, abs=10
    )


def test_the_host_s_clock_is_told() -> None:
    """
    Also where nothing but locks was traced: it was 100 s when the clock of spans was at 2.
    """
    file = json.loads(file_of.render(locks=[replace(_recording(), ended_ns=100 * _S)]))

    assert 99 * _S == file["otherData"]["origin_unix_ns"]
    assert None is json.loads(file_of.render(locks=[_recording()]))["otherData"]["origin_unix_ns"]


def test_without_a_timeline_there_is_no_picture() -> None:
    """
    Of a process whose locks could not be traced there is an empty one.
    """
    with pytest.raises(ValueError, match="has no timeline"):
        file_of.render(locks=[lock_recording()])
    unread = lock_recording(invalid="its tables cannot be read")
    assert [] == _spans(unread)
    untraced = lock_recording(has_totals=False, invalid="it is too old")

    assert ["locks are not seen any more, because it is too old"] == [
        event["name"] for event in _events(untraced, "i")
    ]
