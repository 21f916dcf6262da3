"""What the report for people says about holds."""

from dataclasses import replace

from gilscope.model.gil import GilTotals, HoldTotals, Recording, ThreadTotals, TracingCost
from gilscope.model.histogram import EMPTY
from gilscope.reports.gil.text import report as text_report
from support.recordings.gil import MS, convoy, full_mode, gil, histogram, observation

_HOLDERS = """
Who held the GIL, by thread role
    1.750s held in 350 holds of 5 ms on average, 88 % of the time
           crunch (app.py:2) (2 threads)
    0.050s held in 125 holds of 400 us on average, 2 % of the time
           serve (app.py:8)

How long the waits lasted
"""
_HISTOGRAMS = """
How long the holds lasted
  p50 ≈ 5.21 ms, p90 ≈ 5.21 ms, p99 ≈ 5.21 ms
    262 us .. 524 us        125  ██████████████▍
    524 us .. 1.05 ms         0
   1.05 ms .. 2.1 ms          0
    2.1 ms .. 4.19 ms         0
   4.19 ms .. 8.39 ms       350  ████████████████████████████████████████

How long the GIL took to change hands
  p50 ≈ 12.1 us, p90 ≈ 12.1 us, p99 ≈ 12.1 us
   8.19 us .. 16.4 us       235  ████████████████████████████████████████

Tracing cost the process about 2.4 ms of CPU time (1420 traps), 0.13 % of what it used itself.

Not counted in full
"""


def _with(
    recording: Recording, *gils: GilTotals, threads: tuple[ThreadTotals, ...] | None = None
) -> Recording:
    seen = recording.observation
    known = seen.totals.threads if threads is None else threads
    totals = replace(seen.totals, gils=gils, threads=known)
    return replace(recording, observation=replace(seen, totals=totals))


def _held_ns(held_ns: int, *, number: int = 0) -> GilTotals:
    return replace(gil(number), held_ns=held_ns)


def test_full_mode_says_how_much_of_the_time_the_lock_was_held() -> None:
    """
    Share, number and mean; holds in flight on a line of their own.
    """
    report = text_report.render(full_mode())

    assert (
        "\nThe GIL was held 90 % of the time, in 475 holds of 3.78 ms on average.\n"
        "Holds in flight at the end, counted up to there: 1, the longest for 3 ms.\n"
        "1.940s lost waiting"
    ) in report


def test_full_mode_lists_holders_and_how_long_holds_took() -> None:
    """
    Roles by time, between what they have lost and the histograms of waits.
    """
    report = text_report.render(full_mode())

    assert _HOLDERS in report
    assert _HISTOGRAMS in report


def test_share_is_of_the_time_that_windows_covered() -> None:
    """
    What lies outside of windows is in neither of the two.
    """
    recording = full_mode()
    seen = recording.observation
    holds = HoldTotals(histogram(*[MS] * 200), EMPTY, held_ns=200 * MS, holding_ns=0)
    totals = replace(
        seen.totals, gils=(replace(gil(), holds=holds, held_ns=900 * MS),), observed_ns=400 * MS
    )

    report = text_report.render(replace(recording, observation=replace(seen, totals=totals)))

    assert "\nThe GIL was held 50 % of the time, in 200 holds of 1 ms on average.\n" in report
    assert "Holds in flight" not in report


def test_contention_mode_says_that_its_share_is_an_estimate() -> None:
    """
    No holders and no holds, but the share of the time that somebody held the lock.
    """
    report = text_report.render(_with(convoy(), _held_ns(1700 * MS)))

    assert ("\nThe GIL was held ≈ 85 % of the time (sampled).\n") in report
    for absent in ("Who held", "How long the holds", "change hands", "Holds still", "Tracing cost"):
        assert absent not in report


def test_nothing_is_said_about_holds_where_nothing_is_known() -> None:
    """
    A share of 0 % would be a claim.
    """
    assert "held" not in text_report.render(convoy())


def test_holds_without_waits_are_reported() -> None:
    """
    A program that nobody waits in still has a lock that is held.
    """
    report = text_report.render(
        _with(full_mode(), *full_mode().observation.totals.gils, threads=())
    )

    assert "\nThe GIL was held 90 % of the time" in report
    assert "\nNo thread had to wait for the GIL.\n\nHow long the holds lasted\n" in report


def test_several_locks_are_counted_together_and_listed() -> None:
    """
    Their shares can add up to more than all of the time.
    """
    recording = Recording(
        observation(gils=(_held_ns(1500 * MS), _held_ns(1000 * MS, number=1), gil(2))),
        "contention",
        2000 * MS,
    )

    report = text_report.render(recording)

    assert ("\nAt any moment ≈ 1.25 of 2 GILs were held (sampled).\n") in report
    assert (
        "\n  interpreter 0: 0.000s in 0 waits, held ≈ 75 % of the time"
        "\n  interpreter 1: 0.000s in 0 waits, held ≈ 50 % of the time"
        "\n  interpreter 2: 0.000s in 0 waits\n"
    ) in report


def test_cost_of_a_long_recording_says_what_its_share_is_of() -> None:
    """
    The share is that of the last minute, the time is that of all.
    """
    report = text_report.render(replace(full_mode(), duration_ns=90_000 * MS))

    assert "0.13 % of what it used itself in the last minute.\n" in report


def test_waits_that_are_estimated_say_from_what() -> None:
    """
    How much of the time was seen, and how far off that is, if it can be told.
    """
    recording = full_mode()
    seen = recording.observation
    cost = TracingCost(MS, 0.01, 10, waits_unseen_ns=1600 * MS, wait_error=0.034)
    words = "Waits were seen in 20 % of the time, as the overhead budget allows; "

    told = _with_cost(recording, cost)
    untold = _with_cost(recording, replace(cost, wait_error=None))

    assert f"{words}what threads have waited is estimated, to 3 %.\n" in told
    assert f"{words}what threads have waited is estimated.\n" in untold
    assert words not in text_report.render(replace(recording, observation=seen))


def _with_cost(recording: Recording, cost: TracingCost) -> str:
    totals = replace(recording.observation.totals, cost=cost)
    return text_report.render(
        replace(recording, observation=replace(recording.observation, totals=totals))
    )
