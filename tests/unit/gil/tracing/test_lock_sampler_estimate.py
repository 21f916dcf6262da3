"""Held time from samples at a lock: the arithmetic."""

from itertools import count
from random import Random

import pytest

from gilscope.gil.probes.coverage import Coverage
from gilscope.gil.tracing._lock_sampler import Sampler
from gilscope.gil.tracing.lock_sampler import CPU_SHARE
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64
from support.gil.lock_page import LockPage, MakeLocks

_MS = 1_000_000
_S = 1000 * _MS
_NEVER_NS = (1 << 64) - 1


class _Estimate:
    """What is known of one lock, looked at when the test says so."""

    _lock = LockPage(0)
    _sampler = Sampler(3, GLIBC_X86_64.locked, CPU_SHARE)
    _pids = count(1)

    def __init__(self, at_ns: int, observed_ns: int) -> None:
        self._pid = next(self._pids)
        coverage = Coverage(observed_ns, _NEVER_NS)
        _add(self._sampler, self._pid, self._lock, at_ns, coverage)

    def credit(self, at_ns: int, locked: bool, observed_ns: int) -> None:  # noqa: FBT001
        self._lock.put(self._lock.conds[0], locked)
        self._sampler.cover(self._pid, Coverage(observed_ns, _NEVER_NS))
        self._sampler.sample(self._pid, at_ns)

    @property
    def figures(self) -> tuple[int, int, int, int]:
        return self._sampler.figures(self._pid, self._lock.conds[0])

    @property
    def held_ns(self) -> int:
        return self.figures[0]

    @property
    def sampled_ns(self) -> int:
        return self.figures[1]


def _add(sampler: Sampler, pid: int, lock: LockPage, at_ns: int, coverage: Coverage) -> None:
    sampler.add(pid, lock.conds[0], lock.thread_id, lock.fileno(), at_ns, coverage)


def _figures(estimate: _Estimate) -> tuple[int, int, int, int]:
    return estimate.figures


def test_each_look_decides_for_the_time_since_the_last_one() -> None:
    """
    Held at a sample: the gap before it counts as held; free: it does not.
    """
    estimate = _Estimate(100, 0)

    estimate.credit(110, True, 0)
    assert (10, 10, 0, 1) == _figures(estimate)
    estimate.credit(115, False, 0)
    assert (10, 15, 0, 2) == _figures(estimate)
    estimate.credit(135, True, 0)
    assert (30, 35, 0, 3) == _figures(estimate)


def test_time_in_windows_is_left_to_them() -> None:
    """
    Of a gap that a window covers in part, the rest is decided; of one that it covers, nothing.
    """
    # 1000 ns had been covered before the lock was added.
    estimate = _Estimate(0, 1000)

    estimate.credit(100, True, 1030)
    assert (70, 70, 0, 1) == _figures(estimate)
    estimate.credit(200, True, 1130)
    assert (70, 70, 0, 1) == _figures(estimate)
    estimate.credit(300, True, 1130)
    assert (170, 170, 0, 2) == _figures(estimate)


def test_window_time_that_is_told_late() -> None:
    """
    Where covered time falls for a moment, or comes all at once, the total is right in the end.
    """
    estimate = _Estimate(0, 0)
    told = [0, 40, 0, 60, 90, 90, 90]

    seen = []
    for index, observed_ns in enumerate(told, start=1):
        estimate.credit(20 * index, True, observed_ns)
        seen.append(estimate.held_ns)

    assert sorted(seen) == seen
    assert 140 - 90 == estimate.held_ns == estimate.sampled_ns


def test_clock_that_seems_to_stand_still() -> None:
    """
    Two samples at the same time, or in the wrong order, as two threads may do it, add nothing.
    """
    estimate = _Estimate(0, 0)
    estimate.credit(100, True, 0)
    estimate.credit(100, True, 0)
    estimate.credit(90, True, 0)

    assert (100, 100, 0, 1) == _figures(estimate)
    estimate.credit(110, True, 0)
    assert (110, 110, 0, 2) == _figures(estimate)


@pytest.mark.parametrize("is_locked", [True, False])
def test_agent_that_was_stopped(is_locked: bool) -> None:  # noqa: FBT001
    """
    What lies between samples that are seconds apart is unknown, less what windows have covered.
    """
    estimate = _Estimate(0, 0)
    estimate.credit(1 * _S, True, 0)

    estimate.credit(61 * _S, is_locked, 5 * _S)
    assert (1 * _S, 1 * _S, 55 * _S, 1) == _figures(estimate)
    # After that it goes on as before.
    estimate.credit(62 * _S, True, 5 * _S)
    assert (2 * _S, 2 * _S, 55 * _S, 2) == _figures(estimate)


def test_three_seconds_are_not_too_late_yet() -> None:
    """
    A machine under load may take that long; only what is longer is a stop.
    """
    estimate = _Estimate(0, 0)

    estimate.credit(3 * _S, True, 0)
    assert (3 * _S, 3 * _S, 0, 1) == _figures(estimate)
    estimate.credit(6 * _S + 1, True, 0)
    assert (3 * _S, 3 * _S, 3 * _S + 1, 1) == _figures(estimate)


def test_whatever_is_told_no_time_is_made_up() -> None:
    """
    Held, sampled and unobserved time never fall, nor do they grow faster than time passes.
    """
    random = Random(7)  # noqa: S311 - the same each time
    for _ in range(200):
        begin_ns = at_ns = random.randrange(1 << 60)
        observed_ns = random.randrange(1 << 40)
        estimate = _Estimate(at_ns, observed_ns)
        last = _figures(estimate)
        for _ in range(50):
            at_ns += random.choice((0, -5, 1, 10 * _MS, 100 * _MS, 4 * _S))
            observed_ns += random.choice((0, -7, 3, 10 * _MS, 100 * _MS))
            estimate.credit(at_ns, random.random() < 0.5, observed_ns)
            figures = _figures(estimate)
            assert all(now >= before for now, before in zip(figures, last, strict=True))
            assert figures[0] <= figures[1]
            assert figures[1] + figures[2] <= max(0, at_ns - begin_ns + 5 * 50)
            last = figures


_CYCLES = (
    (0.05, 0.05),
    (0.2, 1.8),
    (7.0, 3.0),  # every 10 ms, as often as samples are planned
    (50.0, 50.0),
    (900.0, 300.0),
)


@pytest.mark.parametrize(("held_ms", "free_ms"), _CYCLES)
@pytest.mark.parametrize("with_windows", [False, True])
def test_share_is_right_in_the_mean(
    held_ms: float,
    free_ms: float,
    with_windows: bool,  # noqa: FBT001
) -> None:
    """
    A lock that goes in circles, at any phase: the share comes out, however the circles lie.
    """
    random = Random(11)  # noqa: S311 - the same each time
    held_ns, sampled_ns = 0, 0
    period_ns, held_part_ns = (held_ms + free_ms) * _MS, held_ms * _MS
    for _ in range(40):
        at_ns, observed_ns = random.randrange(100 * _S), 0
        phase_ns = random.randrange(int(period_ns))
        estimate = _Estimate(at_ns, observed_ns)
        for _ in range(500):
            gap_ns = int(10 * _MS * random.uniform(0.5, 1.5))
            at_ns += gap_ns
            if with_windows and random.random() < 0.2:
                observed_ns += int(gap_ns * random.random())
            is_locked = (at_ns + phase_ns) % period_ns < held_part_ns
            estimate.credit(at_ns, is_locked, observed_ns)
        held_ns += estimate.held_ns
        sampled_ns += estimate.sampled_ns

    # 20000 samples, in 40 runs that are independent whatever the length of the circle.
    assert held_ms / (held_ms + free_ms) == pytest.approx(held_ns / sampled_ns, abs=0.02)


def test_window_begins_and_ends_between_looks(lock_page: MakeLocks) -> None:
    """
    Its time is left out from its beginning, told at once, and comes to what its end says.
    """
    sampler, lock = Sampler(3, GLIBC_X86_64.locked, CPU_SHARE), lock_page(1)
    (cond,) = lock.conds
    _add(sampler, 7, lock, 1000, Coverage(300, _NEVER_NS))
    sampler.sample(7, 1100)
    sampler.cover(7, Coverage(300, 1140))
    sampler.sample(7, 1200)
    seen = [sampler.figures(7, cond)]
    sampler.sample(7, 1250)
    seen.append(sampler.figures(7, cond))
    # It had used up its traps before that.
    sampler.cover(7, Coverage(300 + 100, _NEVER_NS))
    sampler.sample(7, 1300)
    seen.append(sampler.figures(7, cond))

    assert [(140, 140, 0, 2), (140, 140, 0, 2), (190, 190, 0, 3)] == seen


def test_look_that_has_nothing_to_decide_is_left_out(lock_page: MakeLocks) -> None:
    """
    What windows have covered is theirs; when they end, samples decide as if they had gone on.
    """
    lock, sampler = lock_page(1), Sampler(3, GLIBC_X86_64.locked, CPU_SHARE)
    (cond,) = lock.conds
    _add(sampler, 7, lock, 0, Coverage(0, 0))
    windows_end_ns = 10_000 * _MS

    for at_ns in range(_MS, windows_end_ns, 100 * _MS):
        sampler.sample(7, at_ns)
    assert (0, 0, False) == sampler.reading()
    assert (0, 0, 0, 0) == sampler.figures(7, cond)
    sampler.cover(7, Coverage(windows_end_ns - 40 * _MS, _NEVER_NS))
    sampler.sample(7, windows_end_ns)
    assert (0, 1, False) == sampler.reading()
    assert (40 * _MS, 40 * _MS, 0, 1) == sampler.figures(7, cond)
