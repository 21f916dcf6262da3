"""The JSON report on locks."""

from gilscope.reports.locks.json import report
from support.recordings.locks import lock_recording


def test_figures_are_those_of_the_recording() -> None:
    """
    Seconds as floats; idle time is apart.
    """
    shown = report(lock_recording())

    assert (4711, "3.14.2t", True, True) == (
        shown["pid"],
        shown["python"],
        shown["free_threaded"],
        shown["valid"],
    )
    assert (0.05, 1.0, 20) == (shown["wait_s"], shown["idle_s"], shown["traps"])
    assert (1.0, 1.0) == (shown["duration_s"], shown["observed_s"])
    first, second = shown["threads"]
    assert (11, 0.03, 12, 0.02) == (first["tid"], first["wait_s"], second["tid"], second["wait_s"])
    lost, spun = first["waits"]
    assert {
        "kind": "object",
        "type": "list",
        "wait_s": 0.024,
        "slept_s": 0.012,
        "waits": 2,
        "sleeps": 2,
        "longest_s": 0.024,
        "stack_state": "whole",
        "frames": [
            {"function": "append", "file": "/app/app.py", "line": 12},
            {"function": "work", "file": "/app/app.py", "line": 22},
        ],
        "held_by": [{"function": "compare", "file": "/app/app.py", "line": 41}],
        "released_by": [{"function": "sort", "file": "/app/app.py", "line": 33}],
    } == lost
    assert (lost["held_by"], None) == (spun["held_by"], spun["released_by"])
    assert {None} == {wait["held_by"] for wait in second["waits"]}
    collections, changes = shown["world_stops"]
    assert {
        "cause": "gc",
        "stops": 5,
        "stopping_s": 0.002,
        "standing_s": 0.008,
        "longest_s": 0.005,
        "stack_state": "whole",
        "frames": lost["frames"],
    } == collections
    assert ("other", 1, 0.0, 0.002, lost["released_by"]) == (
        *(changes[key] for key in ("cause", "stops", "stopping_s", "standing_s")),
        changes["frames"],
    )


def test_what_was_not_traced_is_null_with_a_reason() -> None:
    """
    Zero would be a figure.
    """
    shown = report(lock_recording(invalid="it is too old", has_totals=False))

    keys = ("observed_s", "wait_s", "idle_s", "traps")
    assert [None] * 4 == [shown[key] for key in keys]
    assert (False, "it is too old", [], []) == (
        shown["valid"],
        shown["invalid_reason"],
        shown["threads"],
        shown["world_stops"],
    )
