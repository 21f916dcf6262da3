"""Bars: what counts as reached."""

import dataclasses

import pytest
from bench.bars import Bar, judge
from bench.conditions import AGAIN, AUTO, CONTENTION, FULL, THREE_PROBES
from bench.measurement import Failure
from bench.works import FIGHT, TIGHT

from support.bench.made import CROWD, quiet_round, results, round_of


def _bar(bars: list[Bar], *words: str) -> Bar:
    (found,) = [bar for bar in bars if all(word in bar.figure for word in words)]
    return found


@pytest.mark.parametrize(("cost", "is_met"), [(1.018, True), (1.022, False)])
def test_auto_may_cost_its_budget_and_the_noise(cost: float, *, is_met: bool) -> None:
    """
    A budget of 1 % and a noise floor of 1 % leave 2 %.
    """
    runs = [*round_of(TIGHT, [(AGAIN, 0.99), (CONTENTION, 1.0), (AUTO[1], cost)])]

    assert is_met is _bar(judge(results(runs)), "auto 1 %, median").is_met


def test_auto_is_judged_by_its_worst_workload() -> None:
    """
    Within the budget in one workload and beyond it in the other is beyond.
    """
    runs = [
        *round_of(TIGHT, [(AGAIN, 1.0), (CONTENTION, 1.0), (AUTO[1], 1.0)]),
        *round_of(FIGHT, [(AGAIN, 1.0), (CONTENTION, 1.0), (AUTO[1], 1.1)]),
    ]
    bar = _bar(judge(results(runs)), "auto 1 %, median")

    assert ("1.100 (*fight*, 0.000)", False) == (bar.measured, bar.is_met)


@pytest.mark.parametrize(("cost", "is_met"), [(5.0, True), (9.5, False)])
def test_full_mode_is_cheaper_than_three_probes(cost: float, *, is_met: bool) -> None:
    """
    What it adds to a cycle is compared.
    """
    costs = [(AGAIN, 1.0), (CONTENTION, 1.0), (FULL, cost), (THREE_PROBES, 9.0)]

    assert is_met is _bar(judge(results(round_of(TIGHT, costs))), "added to").is_met


@pytest.mark.parametrize(
    ("tells", "is_met"), [(0.6, False), (0.7, True), (1.4, True), (1.6, False)]
)
def test_self_report_is_right_within_half(tells: float, *, is_met: bool) -> None:
    """
    Too little is as wrong as too much.
    """
    runs = round_of(TIGHT, [(AGAIN, 1.0), (CONTENTION, 1.0), (FULL, 6.0)], tells=tells)

    assert is_met is _bar(judge(results(runs)), "self-reported", "full").is_met


def test_self_report_in_the_noise_is_not_judged() -> None:
    """
    2 % measured where the noise is 3 % say nothing about 40 % reported.
    """
    costs = [(AGAIN, 0.97), (CONTENTION, 1.0), (AUTO[2], 1.02)]
    bars = judge(results(round_of(TIGHT, costs, tells=20.0)))

    assert [] == [bar for bar in bars if "self-reported" in bar.figure and "auto" in bar.figure]


def test_an_agent_that_says_nothing_is_not_judged() -> None:
    """
    However much it costs.
    """
    runs = round_of(TIGHT, [(AGAIN, 1.0), (CONTENTION, 1.0), (FULL, 6.0)], tells=None)
    bar = _bar(judge(results(runs)), "self-reported", "full")

    assert ("not measured", None) == (bar.measured, bar.is_met)


def test_what_was_not_measured_is_not_met() -> None:
    """
    Nor is it missed: the page says that it was not measured.
    """
    bars = judge(results(quiet_round(TIGHT)))

    assert [None] * 5 == [bar.is_met for bar in bars if bar.measured == "not measured"]


@pytest.mark.parametrize(
    ("lost", "is_met"), [((("began_unseen", 3),), True), ((("table_full", 1),), False)]
)
def test_nothing_is_lost(lost: tuple[tuple[str, int], ...], *, is_met: bool) -> None:
    """
    But what had begun before the probes were there.
    """
    crowd = dataclasses.replace(CROWD, lost=lost)
    bars = judge(results(quiet_round(TIGHT), crowds=[crowd]))

    assert is_met is _bar(bars, "lost events").is_met


def test_a_failure_of_gilscope_is_a_bar_missed() -> None:
    """
    One of another tool is not.
    """
    failures = [Failure(0, TIGHT.key, each.key, "no") for each in (FULL, THREE_PROBES)]
    bar = _bar(judge(results(quiet_round(TIGHT), failures=failures)), "failed")

    assert ("1", False) == (bar.measured, bar.is_met)
