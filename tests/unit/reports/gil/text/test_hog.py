"""The verdict on code that keeps the GIL although it is asked to drop it."""

from dataclasses import replace

from gilscope.model.gil import Edge, Recording, SlowDrop, Tally
from gilscope.model.kinds import Kind
from gilscope.model.moment.hold_state import HoldState, State
from gilscope.model.stack import StackState
from gilscope.reports.gil.text import report as text_report
from gilscope.reports.gil.text.hog import hog_lines
from gilscope.text.ansi import Paint
from support.recordings.gil import MS, SERVING, convoy, held_up_of, stack

_PARSE = ("parse", "/srv/app.py", 4, 7)
_SCAN = ("scan", "/usr/lib/python3.11/json/scanner.py", 2, 3)


def _with(*slow_drops: SlowDrop) -> Recording:
    recording = convoy()
    seen = recording.observation
    totals = replace(seen.totals, slow_drops=slow_drops)
    return replace(recording, observation=replace(seen, totals=totals))


def _lines(*slow_drops: SlowDrop) -> list[str]:
    return list(hog_lines(_with(*slow_drops), Paint(on=False)))


def test_hog_is_told_by_the_applications_line_and_where_it_stood() -> None:
    """
    All that was lost in what one function has called is its.
    """
    lines = _lines(
        SlowDrop(stack(_SCAN, _PARSE), Tally(500 * MS, 3), 200 * MS),
        SlowDrop(stack(_PARSE), Tally(100 * MS, 1), 100 * MS),
        SlowDrop(stack(("other", "/srv/app.py", 9, 9)), Tally(450 * MS, 1), 450 * MS),
    )

    assert [
        "Hog: parse (app.py:7), in scan (json/scanner.py:3)",
        (
            "  was asked 4 times to drop the GIL and kept it, 200 ms at the longest "
            "and 30 % of the time."
        ),
    ] == lines[:2]


def test_call_that_goes_on_says_since_when() -> None:
    """
    A thread that runs no Python code has no place.
    """
    nowhere = stack(state=StackState.NO_PYTHON)
    hog = SlowDrop(nowhere, Tally(1900 * MS, 1), 1900 * MS, in_flight_ns=1900 * MS)

    assert [
        "Hog: (no Python code)",
        (
            "  was asked 1 time to drop the GIL and kept it, 1.9 s at the longest and 95 % of the "
            "time; it has not dropped it for 1.9 s now."
        ),
    ] == _lines(hog)[:2]


def test_hog_takes_the_place_of_the_convoy_behind_it() -> None:
    """
    And below a fifth of the time the convoy is what there is to tell.
    """
    few, many = (SlowDrop(stack(_PARSE), Tally(ms * MS, 9), 90 * MS) for ms in (399, 400))

    assert [] == _lines(few) == _lines()
    assert ("\nConvoy: ", "\nHog: ") == tuple(
        word
        for slow_drop in (few, many)
        for word in ("\nConvoy: ", "\nHog: ")
        if word in text_report.render(_with(slow_drop))
    )


def test_why_it_keeps_it_decides_on_what_helps() -> None:
    """
    With the cgroup's own figure beside it, where that has been throttled.
    """
    holder = stack(_PARSE)
    recording = _with(SlowDrop(holder, Tally(500 * MS, 1), 500 * MS))
    edges = (Edge(Kind.CONVOY, SERVING, holder, Tally(500 * MS, 1)),)
    held_up = held_up_of(edges, HoldState(State.NO_CPU))
    totals = replace(
        recording.observation.totals, edges=edges, held_up=held_up, throttled_ns=400 * MS
    )
    seen = replace(recording.observation, totals=totals)
    lines = list(hog_lines(replace(recording, observation=seen), Paint(on=False)))

    assert [
        "  Why: ≈ 100 % no CPU; its cgroup was throttled for 400 ms.",
        "  What helps: a higher CPU limit or none, fewer threads that compute beside it, no lower",
        "  priority for the thread that holds the GIL.",
        "  A shorter sys.setswitchinterval() does not: the request is not heard.",
    ] == lines[2:]
