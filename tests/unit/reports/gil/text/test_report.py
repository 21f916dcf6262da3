"""The report for people, as a whole."""

from dataclasses import replace

import pytest

from gilscope.gil.abi import Loss
from gilscope.model.gil import Recording, TracingCost
from gilscope.model.histogram import EMPTY
from gilscope.reports.gil.text import report as text_report
from support.recordings.gil import MS, convoy, full_mode, gil, histogram, observation

_CONVOY = """\
app.py, pid 4711, CPython 3.11.2
2.000s in contention mode. The GIL was found by its own call sites (build 571d98e01096).

1.940s lost waiting for the GIL in 235 waits: at any moment 0.97 threads were waiting on average.
How often the GIL was acquired without a wait is not known: that takes full mode.
Waits in flight at the end, counted up to there: 1, the longest for 3 ms.
Drop requests: 230, drop latency p50 ≈ 88.8 us, p99 ≈ 88.8 us.

Convoy: serve (app.py:8)
  queued 50 times a second for at least a switch interval (5 ms), 15 ms on average:
  75 % of its time, in 100 of the 125 times that it had to wait after a blocking call.
  Behind crunch (app.py:2).
  What helps: compute in another process, or in code that releases the GIL;
  sys.setswitchinterval(0.0005): ≈ 589 us to 10.5 ms a wait, with ≈ 8.6 times as many switches.

What a change would bring (estimates)
  sys.setswitchinterval(0.0005) instead of 0.005:
    ≈ 589 us to 10.5 ms for each convoy wait, not 15 ms; ≈ 8.6 times the switches,
    if threads wait for as many turns of others as now, and holders drop the GIL as soon.

Time lost, by thread role and kind
    1.500s lost waiting (100x GIL_CONVOY), 75 % of its time
           serve (app.py:8)
           came back from a blocking call and queued for a switch interval or longer
    0.410s lost waiting (110x GIL_PREEMPTION), 10 % of its time
           crunch (app.py:2) (2 threads)
           was preempted by another thread
    0.030s lost waiting (25x GIL_BLOCKING_CALL), 2 % of its time
           serve (app.py:8)
           came back from a blocking call and waited for less than that

How long the waits lasted
  p50 ≈ 4.02 ms, p90 ≈ 14.7 ms, p99 ≈ 14.7 ms
    524 us .. 1.05 ms        25  █████████▏
   1.05 ms .. 2.1 ms          0
    2.1 ms .. 4.19 ms       110  ████████████████████████████████████████
   4.19 ms .. 8.39 ms         0
   8.39 ms .. 16.8 ms       100  ████████████████████████████████████▍

How long holders took to drop the GIL when asked
  p50 ≈ 88.8 us, p90 ≈ 88.8 us, p99 ≈ 88.8 us
   65.5 us .. 131 us        200  ████████████████████████████████████████

Not counted in full
         2 waits begun before the recording, counted without the first part
"""


def test_convoy_is_called_by_its_name() -> None:
    """
    The whole report of a convoy.
    """
    assert _CONVOY == text_report.render(convoy())


def test_colour_changes_nothing_but_the_colour() -> None:
    """
    On a terminal the same words stand in colour.
    """
    coloured = text_report.render(convoy(), colour=True)
    for code in ("\033[1m", "\033[31m", "\033[2m", "\033[0m"):
        assert code in coloured
        coloured = coloured.replace(code, "")

    assert _CONVOY == coloured


def test_waits_are_told_out_of_all_acquires() -> None:
    """
    Where holds are seen, that is known.
    """
    report = text_report.render(full_mode())

    assert "\nThat is 49 % of the 475 acquires: all others found it free.\n" in report
    assert "is not known" not in report


def test_process_without_contention_is_said_to_have_none() -> None:
    """
    No table of zeros.
    """
    report = text_report.render(Recording(observation(gils=(gil(),)), "contention", 2000 * MS))

    assert "\nNo thread had to wait for the GIL.\n\nNo event was lost.\n" in report


def test_invalid_observation_shows_the_reason_and_no_figures() -> None:
    """
    Wrong numbers are worse than none.
    """
    recording = convoy()
    reason = "what the probes saw is not a GIL's (invalid_mutex)"
    spoilt = replace(recording.observation, invalid=reason)

    report = text_report.render(replace(recording, observation=spoilt))

    assert report.endswith(f"\nNothing is reported, because {reason}.\n")
    assert "lost waiting" not in report


def test_interpreters_with_their_own_gil_are_listed() -> None:
    """
    More than one lock: who waited for which.
    """
    seen = observation(
        convoy().observation.totals.threads,
        (gil(0), gil(1, preemption=histogram(MS, 2 * MS))),
    )

    report = text_report.render(Recording(seen, "contention", 2000 * MS))

    assert "  interpreter 0: 0.000s in 0 waits\n  interpreter 1: 0.003s in 2 waits\n" in report


def test_what_is_in_flight_may_not_count_where_waits_are_seen_in_windows() -> None:
    """
    So nothing is said of that.
    """
    recording = convoy()
    totals = recording.observation.totals
    seen = replace(totals, cost=TracingCost(MS, 0.01, 10, waits_unseen_ns=MS))
    observation = replace(recording.observation, totals=seen)

    report = text_report.render(replace(recording, observation=observation))

    assert "\nWaits in flight at the end: 1, the longest for 3 ms.\n" in report


@pytest.mark.parametrize("loss", [loss for loss in Loss if not loss.is_invalid])
def test_reasons_for_lost_events_are_put_into_words(loss: Loss) -> None:
    """
    Whatever does not make the whole report invalid can be listed in it.
    """
    seen = observation(gils=(gil(),), lost_events={loss.value: 3})

    report = text_report.render(Recording(seen, "contention", 2000 * MS))

    assert "\nNot counted in full\n         3 " in report
    assert f" 3 {loss.value}\n" not in report


def test_what_has_not_ended_has_no_figures_of_what_ended() -> None:
    """
    A single wait that goes on: no histogram of none, no latency of no answer.
    """
    recording = convoy()
    observation = recording.observation
    gils = tuple(
        replace(gil, waits=dict.fromkeys(gil.waits, EMPTY), drop_latency=EMPTY, drop_requests=1)
        for gil in observation.totals.gils
    )
    totals = replace(observation.totals, gils=gils)
    report = text_report.render(replace(recording, observation=replace(observation, totals=totals)))

    assert "Drop requests: 1, none answered." in report.splitlines()
    assert "unknown" not in report
    assert "How long the waits lasted" not in report
    assert "How long holders took" not in report


def test_a_lock_whose_holds_nothing_shows() -> None:
    """
    It is not said that full mode would tell how often it was acquired.
    """
    recording = convoy()
    seen = recording.observation
    pypy = replace(seen.process, asks_holder=False, shows_holds=False, runtime="pypy")
    other = replace(seen, process=pypy)
    shown = text_report.render(replace(recording, observation=other))

    assert "without a wait is not known: nothing shows the holds of this lock." in shown
    assert "Failed wake-ups" not in shown
