"""The recording as a file for speedscope.

The schema beside this is the published one, from release 1.25.0 of speedscope.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema

from gilscope.model.gil import Recording
from gilscope.reports.gil import speedscope
from support.recordings.gil import convoy, with_edges

_SCHEMA = Path(__file__).with_name("speedscope") / "file-format-schema.json"


def _file(recording: Recording) -> dict[str, Any]:
    """Return the file; what its schema cannot say is checked here."""
    file: dict[str, Any] = json.loads(speedscope.render(recording))
    jsonschema.Draft7Validator(json.loads(_SCHEMA.read_text())).validate(file)
    frames = len(file["shared"]["frames"])
    for profile in file["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"]
        assert all(0 <= index < frames for sample in profile["samples"] for index in sample)
    return file


def _named(file: dict[str, Any], number: int) -> list[tuple[list[str], int]]:
    names = [frame["name"] for frame in file["shared"]["frames"]]
    profile = file["profiles"][number]
    return [
        ([names[index] for index in sample], weight)
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True)
    ]


def test_profiles_of_both_ends() -> None:
    """
    Nanoseconds by kind and stack, outermost first, the costliest first.
    """
    file = _file(with_edges())
    runs = ["Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run"]

    assert [("waiters", "nanoseconds"), ("holders", "nanoseconds")] == [
        (profile["name"], profile["unit"]) for profile in file["profiles"]
    ]
    assert [
        (["GIL_CONVOY", *runs, "serve", "handle"], 1_500_000_000),
        (["GIL_PREEMPTION", *runs, "crunch"], 410_000_000),
        (["GIL_BLOCKING_CALL", *runs, "serve", "handle"], 30_000_000),
    ] == _named(file, 0)
    torn = "[stack changed while being read]"
    cut = "[deeper than what is noted]"
    assert [
        (["GIL_CONVOY", *runs, "crunch"], 1_100_000_000),
        (["GIL_CONVOY", cut, "Thread.run", "crunch", "Pattern.scan <café>"], 350_000_000),
        (["GIL_PREEMPTION", *runs, "crunch", torn], 340_000_000),
        (["GIL_PREEMPTION", "[no Python code]"], 70_000_000),
        (["GIL_CONVOY", "[unknown]"], 50_000_000),
        (["GIL_BLOCKING_CALL", *runs, "crunch"], 30_000_000),
    ] == _named(file, 1)


def test_kinds_weigh_what_their_edges_do() -> None:
    """
    In both profiles the outermost level shares all time lost out among the kinds.
    """
    recording = with_edges()
    file = _file(recording)
    expected: Counter[str] = Counter()
    for edge in recording.observation.totals.edges:
        expected[edge.kind.value] += edge.lost.ns

    for number in (0, 1):
        weights: Counter[str] = Counter()
        for names, ns in _named(file, number):
            weights[names[0]] += ns
        assert expected == weights


def test_frame_has_its_file_and_the_line_that_ran() -> None:
    """
    Frames of one function at two lines are two frames.
    """
    frames = _file(with_edges())["shared"]["frames"]

    assert [
        {"name": "crunch", "file": "app.py", "line": 4},
        {"name": "crunch", "file": "app.py", "line": 5},
    ] == [frame for frame in frames if frame["name"] == "crunch"]


def test_nothing_lost_is_a_file_too() -> None:
    """
    Two empty profiles, and the name of the file says how long it was looked.
    """
    file = _file(convoy())

    assert "app.py, pid 4711: 2.000s in contention mode" == file["name"]
    assert [([], 0)] * 2 == [
        (profile["samples"], profile["endValue"]) for profile in file["profiles"]
    ]


def test_invalid_observation_says_so() -> None:
    """
    The reason is in the name, which the viewer shows.
    """
    recording = convoy()
    spoilt = replace(recording, observation=replace(recording.observation, invalid="why"))

    assert "app.py, pid 4711: nothing is reported, because why" == _file(spoilt)["name"]
