"""What transactions have lost in speedscope's format."""

import json
from typing import Any

from gilscope.model.gil import Recording
from gilscope.model.session import Session
from gilscope.reports.renderers import RENDERERS
from support.recordings.gil import with_edges
from support.recordings.transactions import MS, stm_recording


def _file(*recordings: Recording) -> dict[str, Any]:
    session = Session(2_000 * MS, "contention", recordings, (stm_recording(),))
    return dict(json.loads(RENDERERS["speedscope"](session)))


def _stacks(file: dict[str, Any], name: str) -> dict[tuple[str, ...], int]:
    (profile,) = [each for each in file["profiles"] if name == each["name"]]
    frames = file["shared"]["frames"]
    return {
        tuple(frames[at]["name"] for at in stack): weight
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True)
    }


def test_aborts_and_pauses_are_profiles() -> None:
    """
    By thread, and by what was waited for; one process has no level of its own.
    """
    file = _file()

    assert ["aborts", "pauses"] == [each["name"] for each in file["profiles"]]
    assert {("worker",): 10 * MS} == _stacks(file, "aborts")
    assert {("STM_WAIT_FREE_SEGMENT",): 20 * MS} == _stacks(file, "pauses")
    assert "app.py, pid 4711: transactions seen for 2.000s" == file["name"]


def test_those_of_a_gil_come_first() -> None:
    """
    And each process is a level.
    """
    file = _file(with_edges())

    assert ["waiters", "holders", "aborts", "pauses"] == [each["name"] for each in file["profiles"]]
    assert {("app.py, pid 4711", "worker"): 10 * MS} == _stacks(file, "aborts")
