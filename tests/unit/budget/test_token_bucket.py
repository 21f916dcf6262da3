"""The books: what comes in, what is spent, and that no stretch costs more than it brings in."""

from itertools import product
from random import Random

import pytest

from gilscope.budget.token_bucket import STRETCH_NS, Budget, TokenBucket, Usage

_S = 1_000_000_000
_MS = 1_000_000
_ONE_PERCENT = Budget(0.01)


def _usage(at_s: float, cpu_s: float, window_cost_ms: float = 0, contention_ms: float = 0) -> Usage:
    """Return a usage with so much CPU time of the process' own."""
    window_ns, contention_ns = int(window_cost_ms * _MS), int(contention_ms * _MS)
    return Usage(
        at_ns=int(at_s * _S),
        cpu_ns=int(cpu_s * _S) + window_ns + contention_ns,
        cost_ns=window_ns + contention_ns,
        window_cost_ns=window_ns,
    )


def _held_ms(bucket: TokenBucket, usage: Usage) -> float:
    bucket.update(usage)
    return round(bucket.held_ns / _MS, 3)


def test_a_share_of_the_process_own_cpu_time_comes_in() -> None:
    """
    Not of what tracing itself has used, nor of what was used before.
    """
    bucket = TokenBucket(_ONE_PERCENT, _usage(100, 50, window_cost_ms=7, contention_ms=8))

    assert 20 == _held_ms(bucket, _usage(101, 52, window_cost_ms=7, contention_ms=8))
    assert 20 == _held_ms(bucket, _usage(102, 53, window_cost_ms=17, contention_ms=8))
    assert 25 == _held_ms(bucket, _usage(103, 54, window_cost_ms=17, contention_ms=13))


def test_a_quiet_process_is_granted_a_tenth_of_a_core() -> None:
    """
    And one that works by fits and starts not more than it has used.
    """
    bucket = TokenBucket(_ONE_PERCENT, _usage(0, 0))

    assert 0.5 == _held_ms(bucket, _usage(0.5, 0))
    assert 2 == _held_ms(bucket, _usage(1, 0.2))
    assert 3 == _held_ms(bucket, _usage(2, 0.2))


def test_what_is_older_than_a_stretch_cannot_be_spent() -> None:
    """
    An idle hour buys no more than 20 s do, to a second.
    """
    bucket = TokenBucket(_ONE_PERCENT, _usage(0, 0))

    for at_s in range(1, 20):
        assert 10 * at_s == _held_ms(bucket, _usage(at_s, at_s))
    for at_s in range(20, 3600, 3):
        assert 170 <= _held_ms(bucket, _usage(at_s, at_s)) <= 200


def test_a_gap_in_the_books_brings_in_nothing() -> None:
    """
    Nobody looked for an hour; then it goes on from nothing.
    """
    bucket = TokenBucket(_ONE_PERCENT, _usage(0, 0))
    bucket.update(_usage(10, 10))

    assert 0 == _held_ms(bucket, _usage(3610, 3610))
    assert 10 == _held_ms(bucket, _usage(3611, 3611))


def test_a_debt_is_not_forgotten() -> None:
    """
    However long ago it was made.
    """
    bucket = TokenBucket(_ONE_PERCENT, _usage(0, 0))

    assert -990 == _held_ms(bucket, _usage(1, 1, window_cost_ms=1000))
    for at_s in range(2, 90):
        assert -1000 + 10 * at_s == _held_ms(bucket, _usage(at_s, at_s, window_cost_ms=1000))


def test_what_contention_probes_owe_is_forgiven() -> None:
    """
    After an hour of it no more is owed than comes in during a stretch.
    """
    bucket = TokenBucket(_ONE_PERCENT, _usage(0, 0))

    for at_s in range(1, 3600):
        bucket.update(_usage(at_s, at_s, contention_ms=30 * at_s))

    assert bucket.earning == pytest.approx(-0.02)
    assert -220 < bucket.held_ns / _MS < -180
    assert -220 < _held_ms(bucket, _usage(3600, 3600, 0, 30 * 3600)) < -180


def test_rates_are_those_of_the_last_stretch() -> None:
    """
    CPU time in cores, and what is left of the income.
    """
    bucket = TokenBucket(_ONE_PERCENT, _usage(0, 0))
    for at_s in range(1, 61):
        cpu_s = min(at_s, 30) / 2
        bucket.update(_usage(at_s, cpu_s, contention_ms=2 * cpu_s))
        if at_s == 30:
            assert bucket.base_rate == pytest.approx(0.5)
            assert bucket.earning == pytest.approx(0.004)

    assert bucket.base_rate == pytest.approx(0.1)
    assert bucket.earning == pytest.approx(0.001)


def test_something_dear_may_be_saved_for() -> None:
    """
    For two minutes at most.
    """
    bucket = TokenBucket(_ONE_PERCENT, _usage(0, 0))
    bucket.update(_usage(1, 1))
    bucket.save_for(500 * _MS)
    for at_s in range(2, 301):
        bucket.update(_usage(at_s, at_s))
    assert bucket.held_ns == pytest.approx(1.2 * 500 * _MS, rel=0.03)

    bucket.save_for(5000 * _MS)
    for at_s in range(301, 601):
        bucket.update(_usage(at_s, at_s))
    assert bucket.held_ns == pytest.approx(1200 * _MS, rel=0.03)

    bucket.save_for(_MS)
    assert bucket.held_ns == pytest.approx(1200 * _MS, rel=0.03)
    assert 200 == pytest.approx(_held_ms(bucket, _usage(601, 601)), rel=0.06)


def test_what_will_be_too_old_is_known_before() -> None:
    """
    If nothing comes in: 200 ms now, half of it in ten seconds.
    """
    bucket = TokenBucket(_ONE_PERCENT, _usage(0, 0))
    for at_s in range(1, 101):
        bucket.update(_usage(at_s, at_s))

    assert bucket.held_after(0) == bucket.held_ns
    assert bucket.held_after(10 * _S) == pytest.approx(bucket.held_ns - 100 * _MS)
    assert bucket.held_after(30 * _S) == 0


@pytest.mark.parametrize("seed", range(5))
def test_no_stretch_that_ends_with_a_cost_exceeds_its_income(seed: int) -> None:
    """
    As long as only what is held is spent, whenever that is, and however the process works.
    """
    random = Random(seed)  # noqa: S311 - nobody has to be kept from guessing
    bucket = TokenBucket(_ONE_PERCENT, _usage(0, 0))
    at_s = cpu_s = spent_ms = 0.0
    cores = 1.0
    moments, costs = [(at_s, cpu_s, spent_ms)], []
    for _ in range(1000):
        elapsed_s = random.uniform(0.05, 3)
        cores = random.choice((cores, cores, cores, random.uniform(0.15, 2)))
        at_s, cpu_s = at_s + elapsed_s, cpu_s + cores * elapsed_s
        held_ms = _held_ms(bucket, _usage(at_s, cpu_s, spent_ms))
        moments.append((at_s, cpu_s, spent_ms))
        if held_ms > 0 and random.random() < 0.3:
            spent_ms += held_ms * random.choice((0.5, 0.9, 0.999))
            bucket.update(_usage(at_s, cpu_s, spent_ms))
            costs.append((at_s, cpu_s, spent_ms))

    excess_ms = [
        (after[2] - before[2]) - 10 * (after[1] - before[1])
        for before, after in product(moments, costs)
        if (after[0] - before[0]) * _S >= STRETCH_NS
    ]
    assert len(costs) > 100
    # All of what is held is spent now and then, and never more.
    assert -20 < max(excess_ms) <= 1e-3
