"""What tracing has cost in the last minute."""

import pytest

from gilscope.budget.recent_cost import RecentCost
from gilscope.budget.token_bucket import Usage

_S = 1_000_000_000


def _usage(at_s: float, cpu_s: float, cost_s: float) -> Usage:
    return Usage(int(at_s * _S), int(cpu_s * _S), int(cost_s * _S), 0)


def test_cost_is_taken_by_the_time_that_the_process_used_itself() -> None:
    """
    Neither what it had used before counts nor what tracing has used.
    """
    recent = RecentCost(_usage(100, 50, 7))
    now = _usage(101, 50.5, 7.1)
    recent.note(now)

    assert 0.25 == pytest.approx(recent.ratio(now))


def test_at_the_beginning_nothing_has_been_used() -> None:
    """
    And a process that sleeps costs nothing by nothing.
    """
    recent = RecentCost(_usage(100, 50, 7))
    assert 0.0 == recent.ratio(_usage(100, 50, 7))

    recent.note(_usage(130, 50, 7))

    assert 0.0 == recent.ratio(_usage(130, 50, 7))


@pytest.mark.parametrize("apart_s", [0.25, 1, 2, 3])
def test_what_is_older_than_a_minute_does_not_count(apart_s: float) -> None:
    """
    However often it is noted: half of the time was overhead until 100 s, nothing since.
    """
    recent = RecentCost(_usage(0, 0, 0))
    ratios = {}
    for number in range(1, int(240 / apart_s) + 1):
        at_s = number * apart_s
        now = _usage(at_s, at_s, min(at_s, 100) / 2)
        recent.note(now)
        ratios[at_s] = recent.ratio(now)

    assert ratios[84] == pytest.approx(1)
    assert ratios[120] == pytest.approx(20 / 40, abs=0.1)
    assert 0.0 == ratios[168]


def test_after_a_long_silence_it_begins_anew() -> None:
    """
    What was used meanwhile is of no known minute.
    """
    recent = RecentCost(_usage(0, 0, 0))
    recent.note(_usage(10, 5, 1))
    silent = _usage(3600, 3000, 600)
    recent.note(silent)
    assert 0.0 == recent.ratio(silent)

    recent.note(_usage(3601, 3001, 600.5))

    assert 1.0 == pytest.approx(recent.ratio(_usage(3601, 3001, 600.5)))
