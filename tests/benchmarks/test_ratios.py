"""Ratios: what is divided by what."""

import dataclasses

import pytest
from bench.conditions import AGAIN, AUTO, BASELINE, CONTENTION, FULL
from bench.measurement import Piece
from bench.ratios import (
    added_ns_per_wait,
    latency_ratios,
    noise,
    overheads,
    ratios,
    switch_ratios,
    unevenness,
)
from bench.works import FIGHT, HTTP, TIGHT

from support.bench.made import agent, round_of, run


def test_a_run_is_divided_by_its_neighbours() -> None:
    """
    The untraced runs just before and behind count, those elsewhere in the round do not.
    """
    runs = [
        run(TIGHT, BASELINE, 900, turn=0),
        run(TIGHT, AGAIN, 900, turn=1),
        run(TIGHT, BASELINE, 100, turn=2),
        run(TIGHT, FULL, 600, 600, turn=3),
        run(TIGHT, BASELINE, 200, turn=4),
    ]

    assert [600 / 150] == ratios(runs, TIGHT, FULL)


def test_what_comes_and_goes_counts() -> None:
    """
    One piece of ten is ten times as slow, as in a window: no median hides it.
    """
    runs = [
        run(TIGHT, BASELINE, 100, turn=0),
        run(TIGHT, AUTO[0], *[100] * 9, 1_000, turn=1),
        run(TIGHT, BASELINE, 100, turn=2),
    ]

    assert [1.9] == ratios(runs, TIGHT, AUTO[0])


def test_windows_are_told_by_the_pieces_that_they_fall_in() -> None:
    """
    However fast the machine was before and behind.
    """
    runs = [
        run(TIGHT, BASELINE, 70, turn=0),
        run(TIGHT, AUTO[0], *[100] * 9, 200, turn=1),
        run(TIGHT, BASELINE, 70, turn=2),
        run(FIGHT, AUTO[0], 100, 300, turn=1),
    ]

    assert [0.0, 0.0] == unevenness(runs, TIGHT, BASELINE)
    assert [pytest.approx(0.1)] == unevenness(runs, TIGHT, AUTO[0])


def test_rounds_and_workloads_are_kept_apart() -> None:
    """
    Every round has its ratio; another workload has none of it.
    """
    runs = [
        *round_of(TIGHT, [(FULL, 6.0)], number=0),
        *round_of(FIGHT, [(FULL, 1.0)], number=0),
        *round_of(TIGHT, [(FULL, 5.0)], number=1),
    ]

    assert [6.0, 5.0] == ratios(runs, TIGHT, FULL)
    assert [1.0] == ratios(runs, FIGHT, FULL)
    assert [] == ratios(runs, HTTP, FULL)


def test_noise_is_the_worst_of_the_untraced() -> None:
    """
    Faster is as noisy as slower.
    """
    runs = [*round_of(TIGHT, [(AGAIN, 0.9)]), *round_of(TIGHT, [(AGAIN, 1.05)], number=1)]

    assert 0.1 == round(noise(runs, TIGHT), 9)


def test_latency_is_that_of_the_median_piece() -> None:
    """
    Clients saw 30 ms instead of 20 ms, and once a second: that was a hiccup.
    """
    seen_ms = (30, 1_000, 30)
    pieces = tuple(Piece(1, 1, each * 1_000_000) for each in seen_ms)
    runs = [
        run(HTTP, BASELINE, 1, 1, turn=0),
        dataclasses.replace(run(HTTP, FULL, turn=1), pieces=pieces),
        run(HTTP, BASELINE, 1, turn=2),
    ]

    assert [1.5] == latency_ratios(runs, HTTP, FULL, lambda piece: piece.p99_ns)


def test_switches_are_those_of_a_unit() -> None:
    """
    Two of 1,000 requests each without, three with: however many requests a run has.
    """
    runs = [
        dataclasses.replace(run(HTTP, BASELINE, 1, 1, turn=0), switches=4_000),
        dataclasses.replace(run(HTTP, FULL, 1, turn=1), switches=3_000),
        dataclasses.replace(run(HTTP, BASELINE, 1, turn=2), switches=2_000),
    ]

    assert [1.5] == switch_ratios(runs, HTTP, FULL)


def test_overhead_is_a_share_of_the_untraced_work() -> None:
    """
    5 s of added CPU time to 1 s of work are 5.0, and so is what gilscope says of 5 s.
    """
    (found,) = overheads(round_of(TIGHT, [(FULL, 6.0)], tells=0.5), TIGHT, FULL)

    assert (5.0, 2.5) == (round(found.measured, 9), found.estimated)


def test_no_estimate_is_no_overhead() -> None:
    """
    What gilscope does not estimate is not compared, rather than taken for nothing.
    """
    runs = [
        run(TIGHT, BASELINE, 100, turn=0),
        run(TIGHT, CONTENTION, 100, turn=1, agent=agent(None)),
        run(TIGHT, BASELINE, 100, turn=2),
    ]

    assert [] == overheads(runs, TIGHT, CONTENTION)


def test_cost_is_shared_among_the_waits_seen() -> None:
    """
    100 ms more for a thousand units with ten waits are 10 ms a wait.
    """
    runs = [
        run(FIGHT, BASELINE, 400, turn=0),
        run(FIGHT, CONTENTION, 500, turn=1, agent=agent(seen=10)),
        run(FIGHT, BASELINE, 400, turn=2),
    ]

    assert [10_000_000] == [
        round(each) for each in added_ns_per_wait(runs, FIGHT, CONTENTION, CONTENTION)
    ]
