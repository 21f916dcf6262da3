"""Waits for locks in a file for speedscope."""

import json

from gilscope.reports.gil import speedscope
from support.recordings.gil import with_edges
from support.recordings.locks import MS, lock_recording


def test_locks_have_a_profile_of_their_own() -> None:
    """
    Below what was waited for; all weights are the time lost.
    """
    file = json.loads(speedscope.render(locks=[lock_recording()]))
    (profile,) = file["profiles"]
    names = [frame["name"] for frame in file["shared"]["frames"]]

    assert "app.py, pid 4711: locks seen for 1.000s" == file["name"]
    assert ("locks", 50 * MS) == (profile["name"], profile["endValue"])
    assert [["object (list)", "work", "append"], ["lock", "work", "append"]] == [
        [names[at] for at in stack] for stack in profile["samples"]
    ]
    assert [30 * MS, 20 * MS] == profile["weights"]


def test_beside_a_gil_they_come_last() -> None:
    """
    The file is named after the recording of the GIL.
    """
    gil = with_edges()
    file = json.loads(speedscope.render(gil, locks=[lock_recording()]))

    assert ["waiters", "holders", "locks"] == [each["name"] for each in file["profiles"]]
