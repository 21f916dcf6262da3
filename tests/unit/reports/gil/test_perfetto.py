"""The timeline as Chrome trace events."""

import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import jsonschema
import pytest

from gilscope.model.gil import Gil, Recording
from gilscope.model.timeline import Span, Timeline
from gilscope.reports.gil import perfetto
from support.recordings.gil import convoy, full_mode, gil, with_timeline

_NUMBER = {"type": "number", "minimum": 0}
_ID = {"type": "integer", "minimum": 1}
_TEXT = {"type": "string", "minLength": 1}
_STACK = {"type": "array", "items": _TEXT, "minItems": 1}


def _event(phase: str, optional: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    properties = {"ph": {"const": phase}, "pid": _ID, "name": _TEXT, **fields}
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(set(properties) - set(optional)),
        "additionalProperties": False,
    }


# What the description of the trace event format asks for, and nothing that it does not know.
_SCHEMA = {
    "type": "object",
    "required": ["displayTimeUnit", "otherData", "traceEvents"],
    "additionalProperties": False,
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object"},
        "traceEvents": {
            "type": "array",
            "items": {
                "anyOf": [
                    _event(
                        "M",
                        ("tid",),
                        tid=_ID,
                        name={"enum": ["process_name", "thread_name"]},
                        args={
                            "type": "object",
                            "properties": {"name": _TEXT},
                            "required": ["name"],
                            "additionalProperties": False,
                        },
                    ),
                    _event(
                        "X",
                        tid=_ID,
                        ts=_NUMBER,
                        dur=_NUMBER,
                        cat={"enum": ["hold", "wait"]},
                        args={
                            "type": "object",
                            "properties": {
                                "interpreter": {"type": "integer"},
                                "waiter": _STACK,
                                "holder": _STACK,
                            },
                            "additionalProperties": False,
                        },
                    ),
                    _event(
                        "X",
                        tid=_ID,
                        ts=_NUMBER,
                        dur=_NUMBER,
                        cat={"const": "holder"},
                        args={
                            "type": "object",
                            "properties": {
                                "thread": _ID,
                                "assumed": {"type": "boolean"},
                                "holder": _STACK,
                            },
                            "required": ["thread", "assumed"],
                            "additionalProperties": False,
                        },
                    ),
                    _event("s", tid=_ID, ts=_NUMBER, cat=_TEXT, id=_ID),
                    _event("f", tid=_ID, ts=_NUMBER, cat=_TEXT, id=_ID, bp={"const": "e"}),
                    _event("i", tid=_ID, ts=_NUMBER, s={"enum": ["g", "p", "t"]}),
                ]
            },
        },
    },
}


def _file(recording: Recording) -> dict[str, Any]:
    file: dict[str, Any] = json.loads(perfetto.render(recording))
    jsonschema.Draft202012Validator(_SCHEMA).validate(file)
    return file


def _events(recording: Recording, phase: str) -> list[dict[str, Any]]:
    return [event for event in _file(recording)["traceEvents"] if event["ph"] == phase]


def _spans(recording: Recording) -> list[dict[str, Any]]:
    return [event for event in _events(recording, "X") if event["cat"] != "holder"]


def _holders(recording: Recording) -> list[tuple[Any, ...]]:
    return [
        (event["name"], event["ts"], event["dur"], event["args"]["assumed"])
        for event in _events(recording, "X")
        if event["cat"] == "holder"
    ]


def test_holder_of_full_mode_is_who_was_seen_to_hold() -> None:
    """
    On one track, by role, with all of the holds.
    """
    assert [
        ("crunch (app.py:2)", 1.0, 8000.003, False),
        ("serve (app.py:8)", 8017.0, 100.0, False),
    ] == _holders(with_timeline())


def test_holder_of_contention_mode_is_inferred() -> None:
    """
    From the ends of waits; what nobody waited for meanwhile is marked, and so is the track.
    """
    recording = with_timeline()
    assert recording.timeline is not None
    waits = tuple(span for span in recording.timeline.spans if span.kind is not None)
    seen = recording.observation
    until = replace(seen, totals=replace(seen.totals, at_ns=waits[-1].ended_ns))
    changed = replace(recording, observation=until, timeline=Timeline(waits, 0))

    assert [
        ("serve (app.py:8)", 8016.0, 105.999, False),
        ("crunch (app.py:2)", 8121.999, 9.001, True),
    ] == _holders(changed)
    assert "GIL holder ≈ by waits" in [event["args"]["name"] for event in _events(changed, "M")]


def test_arrows_lead_from_the_holder_to_long_waits() -> None:
    """
    Both ends lie where the wait begins: in a slice of the holder's track, and in the wait.
    """
    recording = with_timeline()
    (start,), (end,) = _events(recording, "s"), _events(recording, "f")

    assert (perfetto.HOLDER_TID + 1, 2001.001) == (start["tid"], start["ts"])
    assert (1, 2001.001, "e") == (end["tid"], end["ts"], end["bp"])
    assert (start["id"], start["name"], start["cat"]) == (end["id"], end["name"], end["cat"])


def test_arrows_of_several_processes_do_not_mix() -> None:
    """
    Viewers match them by their numbers in the whole file.
    """
    file = json.loads(perfetto.render(with_timeline(), with_timeline()))

    assert [1, 2] == [event["id"] for event in file["traceEvents"] if event["ph"] == "s"]


def test_origin_is_told_by_both_clocks() -> None:
    """
    The host's clock said 100 s when the observation ended at 9 s of the monotonic one.
    """
    recording = with_timeline()
    seen = recording.observation
    totals = replace(seen.totals, at_ns=9_000_000_000)
    changed = replace(recording, observation=replace(seen, totals=totals), ended_ns=100_000_000_000)
    other = _file(changed)["otherData"]

    assert ("CLOCK_MONOTONIC", seen.since_ns) == (other["clock"], other["origin_ns"])
    assert 91_000_000_000 + seen.since_ns == other["origin_unix_ns"]
    assert _file(recording)["otherData"]["origin_unix_ns"] is None


def test_spans_are_events_with_every_nanosecond() -> None:
    """
    Microseconds with three decimals since the beginning of the recording, in the given order.
    """
    assert [
        (perfetto.HOLDS_TID + 2, "hold", "hold", 1.0, 8000.003),
        (1, "GIL_CONVOY", "wait", 2001.001, 6014.999),
        (perfetto.HOLDS_TID + 1, "hold", "hold", 8017.0, 100.0),
        (2, "GIL_PREEMPTION", "wait", 8001.0, 120.999),
        (9, "GIL_UNKNOWN", "wait", 8131.0, 0.0),
    ] == [
        (event["tid"], event["name"], event["cat"], event["ts"], event["dur"])
        for event in _spans(with_timeline())
    ]


def test_waits_have_both_stacks() -> None:
    """
    Innermost first; brackets stand where frames are missing.
    """
    runs = [
        "Thread.run (threading.py:975)",
        "Thread._bootstrap_inner (threading.py:1038)",
        "Thread._bootstrap (threading.py:995)",
    ]
    torn = "[stack changed while being read]"
    serving = ["handle (app.py:13)", "serve (app.py:9)", *runs]

    assert [
        {},
        {"waiter": serving, "holder": [torn, "crunch (app.py:4)", *runs]},
        {},
        {"waiter": ["crunch (app.py:4)", *runs], "holder": serving},
        {"waiter": ["[unknown]"], "holder": ["[unknown]"]},
    ] == [event["args"] for event in _spans(with_timeline())]


def test_tracks_have_the_names_of_roles() -> None:
    """
    A thread has a track for its waits and one for its holds, each where it has any.
    """
    names = {
        (event.get("tid"), event["name"]): event["args"]["name"]
        for event in _events(with_timeline(), "M")
    }

    assert {
        (None, "process_name"): "app.py",
        (1, "thread_name"): "serve (app.py:8)",
        (2, "thread_name"): "crunch (app.py:2)",
        (9, "thread_name"): "thread",
        (perfetto.HOLDS_TID + 1, "thread_name"): "serve (app.py:8): holds",
        (perfetto.HOLDS_TID + 2, "thread_name"): "crunch (app.py:2): holds",
        (perfetto.HOLDER_TID + 1, "thread_name"): "GIL holder",
    } == names


def test_nothing_overlaps_on_a_track() -> None:
    """
    A thread that is preempted waits from a moment before it lets go: viewers would drop one.
    """
    tracks: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for event in _spans(with_timeline()):
        tracks[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))

    assert [] == [
        (tid, earlier, later)
        for tid, spans in tracks.items()
        for earlier, later in pairwise(sorted(spans))
        if later[0] < earlier[1]
    ]


def test_what_was_dropped_is_told_twice() -> None:
    """
    To programs as a number, to people in the picture itself.
    """
    file = _file(with_timeline())

    assert 3 == file["otherData"]["dropped_spans"]
    assert ["3 more waits and holds were dropped and are not shown"] == [
        event["name"] for event in file["traceEvents"] if event["ph"] == "i"
    ]


def test_nothing_dropped_is_not_mentioned() -> None:
    """
    The picture of a complete timeline shows spans and nothing else.
    """
    recording = replace(full_mode(), timeline=Timeline((), 0))

    assert [] == _events(recording, "i")
    assert 0 == _file(recording)["otherData"]["dropped_spans"]


def test_invalid_observation_says_so() -> None:
    """
    The reason is an event, because there are no others.
    """
    recording = replace(convoy(), timeline=Timeline((), 0))
    spoilt = replace(recording, observation=replace(recording.observation, invalid="why"))

    assert ["nothing is reported, because why"] == [event["name"] for event in _events(spoilt, "i")]


def test_interpreters_are_told_apart() -> None:
    """
    Where there are several locks, each span says whose it is about.
    """
    recording = with_timeline()
    seen = recording.observation
    other = replace(gil(), gil=Gil(9000, 1))
    totals = replace(seen.totals, gils=(*seen.totals.gils, other))
    spans = (Span(1, 1, 7_000_000_000, 7_000_000_001, None),)
    several = replace(
        recording, observation=replace(seen, totals=totals), timeline=Timeline(spans, 0)
    )

    assert [{"interpreter": 1}] == [event["args"] for event in _spans(several)]


def test_no_time_is_before_the_beginning() -> None:
    """
    Viewers start at the first span, should it be older than the recording.
    """
    recording = with_timeline()
    span = Span(1, 0, 6_000_000_000, 7_000_000_000, None)
    early = replace(recording, timeline=Timeline((span,), 0))

    assert [0.0] == [event["ts"] for event in _spans(early)]
    assert 6_000_000_000 == _file(early)["otherData"]["origin_ns"]


def test_timeline_is_needed() -> None:
    """
    A recording that was made without one cannot be drawn.
    """
    with pytest.raises(ValueError, match="has no timeline"):
        perfetto.render(convoy())
