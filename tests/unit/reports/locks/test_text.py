"""The text report on locks."""

from dataclasses import replace

from gilscope.model.locks import LockKind
from gilscope.reports.locks import text
from support.recordings.locks import lock_recording

_WHOLE = """\
Locks of app.py, pid 4711, CPython 3.14.2t
1.000s.

0.050s lost waiting for locks, 3 % of the time of first (thread 11).
Besides, threads were idle for 1.000s: they waited for something to do, which is no contention.
The world was stopped 6 times a second, 1 % of the time; the longest stop took 5 ms.

What was waited for, and where
    0.030s lost (2x the lock of an object (list); longest 24 ms, 50 % of it spinning)
           File "/app/app.py", line 12, in append
               shared.append(1)
             called from File "/app/app.py", line 22, in work
         held by
           File "/app/app.py", line 41, in compare
         released by, 80 % of it
           File "/app/app.py", line 33, in sort
    0.020s lost (2x a threading.Lock; longest 20 ms, 50 % of it spinning)
           File "/app/app.py", line 12, in append
               shared.append(1)
             called from File "/app/app.py", line 22, in work

Stops of the world, and where they were asked for
    0.010s stopped (5x for garbage collection; longest 5 ms, 20 % until all had stopped)
           File "/app/app.py", line 12, in append
               shared.append(1)
             called from File "/app/app.py", line 22, in work
    0.002s stopped (1x for another cause; longest 1 ms, 0 % until all had stopped)
           File "/app/app.py", line 33, in sort

By thread
    0.030s lost (2x), idle 0.000s: first, thread 11
    0.020s lost (2x), idle 1.000s: second, thread 12

Who takes a lock while it is free is not seen, nor what is tried without a lock.
Tracing cost the process about 60 us of CPU time (20 traps), 0.1 % of what it used itself.
Not counted in full: 1 sleep begun before the recording, not counted.
"""


def test_the_report_says_what_was_waited_for_and_where() -> None:
    """
    The answer first, then places, threads, limits, the cost and what was lost.
    """
    assert text.render(lock_recording()) == _WHOLE


def test_what_could_not_be_traced_has_its_reason() -> None:
    """
    And no figure.
    """
    recording = lock_recording(python="3.12.1", invalid="it is too old", has_totals=False)

    assert [
        "Locks of app.py, pid 4711, CPython 3.12.1",
        "They were not traced: it is too old.",
    ] == text.render(recording).splitlines()


def test_what_was_seen_in_windows_says_how_long_and_what_that_means() -> None:
    """
    Shares are of the time that was observed.
    """
    shown = text.render(lock_recording(observed_ns=500_000_000)).splitlines()
    coverage = (
        "Seen for 0.500s in windows at random, 50 % of the time, as the overhead budget allows: "
        "all figures are of these. --mode full sees all of the time."
    )

    assert [
        "1.000s.",
        coverage,
        "A wait counts that begins and ends in one window: of long ones the fewer are seen.",
        "",
        "0.050s lost waiting for locks, 6 % of the time of first (thread 11).",
    ] == shown[1:6]


def test_a_screen_leaves_the_limits_out() -> None:
    """
    They are the same every time.
    """
    shown = text.render(lock_recording(), whole=False)

    assert "is not seen" not in shown
    assert "idle 1.000s: second" in shown


def test_a_stop_of_the_world_is_ended_and_not_released() -> None:
    """
    By who has asked for it, and who asks waits for the last one to stop.
    """
    recording = lock_recording()
    totals = recording.observation.totals
    assert totals is not None
    (first, _) = totals.threads
    for kind, words in (
        (LockKind.WORLD_STOP, "ended by"),
        (LockKind.WORLD_STOP_REQUEST, "the last to stop"),
    ):
        waits = tuple(replace(wait, kind=kind, type=None) for wait in first.waits)
        shown = replace(totals, threads=(replace(first, waits=waits),))
        observation = replace(recording.observation, totals=shown)

        assert f"         {words}, 80 % of it\n" in text.render(
            replace(recording, observation=observation)
        )
