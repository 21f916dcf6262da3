"""When the probes on waits are put in and taken out, and how far off an estimate is."""

from random import Random

import pytest

from gilscope.budget.wait_share import WINDOW_NS, WaitSchedule
from gilscope.gil.waits.policy import relative_error

_S = 1_000_000_000
_MS = 1_000_000


def _random(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - nobody has to be kept from guessing


def _waits(random: Random, seconds: int, *, burst_s: float) -> list[tuple[int, int]]:
    """Return when waits begin, and how long they last: in bursts, whose rate varies tenfold."""
    waits, at_ns, until_ns, rate = [], 0, 0, 0.0
    while at_ns < seconds * _S:
        if at_ns >= until_ns:
            until_ns = at_ns + int(random.expovariate(1 / burst_s) * _S)
            rate = random.choice((20, 60, 200))
        at_ns += int(random.expovariate(rate) * _S)
        waits.append((at_ns, int(random.expovariate(1 / 3) * _MS)))
    return waits


def _seen(waits: list[tuple[int, int]], seconds: int, share: float, seed: int) -> list[int]:
    """Return how long the waits of each window have lasted."""
    schedule = WaitSchedule(_random(seed))
    schedule.begin(0, 0, share)
    sums, at = [], 0
    while schedule.from_ns + WINDOW_NS < seconds * _S:
        from_ns = schedule.from_ns
        total_ns = 0
        while at < len(waits) and waits[at][0] < from_ns + WINDOW_NS:
            if waits[at][0] >= from_ns:
                total_ns += waits[at][1]
            at += 1
        sums.append(total_ns)
        schedule.advance(from_ns, share)
    return sums


@pytest.mark.parametrize("burst_s", [0.05, 1.0, 10.0])
def test_estimates_are_as_far_off_as_they_say(burst_s: float) -> None:
    """
    In some 19 of 20 cases, and right in the mean, however the waits come.
    """
    seconds, share, runs = 240, 0.2, 150
    errors, within = [], 0
    for seed in range(runs):
        waits = _waits(_random(seed), seconds, burst_s=burst_s)
        sums = _seen(waits, seconds, share, seed + 1000)
        truth = sum(ns for _, ns in waits)
        error = relative_error(sums)
        assert error is not None
        off = sum(sums) / share / truth - 1
        errors.append(off)
        within += abs(off) <= error

    assert abs(sum(errors) / runs) < 0.02
    assert within >= 0.9 * runs


def test_of_few_windows_nothing_is_said() -> None:
    """
    Nor where nobody has waited.
    """
    assert relative_error([5, 7] * 3) is None
    assert relative_error([0] * 100) is None
    assert 0.0 == relative_error([5] * 100)
    assert 1.96 * 1.0 / (6 * 10) == pytest.approx(relative_error([5, 7] * 50), rel=0.01)
