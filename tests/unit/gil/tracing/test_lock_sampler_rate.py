"""Held time from samples at a lock: how often it is looked at, and how right that is."""

from collections import Counter
from random import Random

import pytest

from gilscope.gil.probes.coverage import NEVER_OPEN, Coverage
from gilscope.gil.tracing._lock_sampler import Sampler, mean_gap_ns
from gilscope.gil.tracing.lock_sampler import CPU_SHARE
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64
from support.gil.lock_page import LockPage

_MS = 1_000_000
_S = 1000 * _MS
_NEVER_NS = (1 << 64) - 1


@pytest.mark.parametrize(
    ("locks", "cost_us", "expected_ms"),
    [
        *((1, *each) for each in ((0, 10), (17, 10), (36, 20), (90, 50), (180, 100), (5000, 100))),
        (20, 5000, 100),
        (30, 180, 100),
        (30, 5000, 150),
        (1000, 17, 10),
        (1000, 1440, 800),
        (1000, 5000, 1000),
    ],
)
def test_pace_keeps_to_its_share_of_a_core(locks: int, cost_us: float, expected_ms: float) -> None:
    """
    Nine tenths of 0.2 % are planned for; the least rate is 10 a second, or 1 where locks are many.
    """
    mean_ns = mean_gap_ns(cost_us * 1000, CPU_SHARE, locks)

    assert expected_ms * _MS == pytest.approx(mean_ns)


_ERROR = 0.018
_ENOUGH = (1.96 * 1.04 / _ERROR) ** 2 / 60


class _Looking:
    """A sampler in simulated time, which sleeps as long as it wants to."""

    def __init__(self, seed: int) -> None:
        self.sampler = Sampler(seed, GLIBC_X86_64.locked, CPU_SHARE, _ENOUGH)
        self.at_ns = 0
        self._lock = LockPage(0)

    def add(self, pid: int) -> None:
        lock = self._lock
        self.sampler.add(pid, lock.conds[0], lock.thread_id, lock.fileno(), self.at_ns, NEVER_OPEN)

    def sample(self, pid: int, locked: bool) -> None:  # noqa: FBT001
        self._lock.put(self._lock.conds[0], locked)
        self.sampler.sample(pid, self.at_ns)

    def figures(self, pid: int) -> tuple[int, int, int, int]:
        return self.sampler.figures(pid, self._lock.conds[0])

    def sleep(self) -> None:
        self.at_ns += self.sampler.next_gap_ns()

    def close(self) -> None:
        self._lock.close()


def test_no_more_looks_than_are_enough() -> None:
    """
    At first as many as for a lock that is held half of the time, then as its own share wants it.
    """
    looking = _Looking(3)
    looking.add(7)
    half_ms = 1000 / (_ENOUGH / 4)
    mean_ms = [looking.sampler.mean_gap_ns / _MS]
    for is_locked in (lambda _: False, lambda n: n % 10 == 0, lambda n: n % 2 == 0, bool):
        for n in range(3000):
            looking.sleep()
            looking.sample(7, is_locked(n))
        mean_ms.append(looking.sampler.mean_gap_ns / _MS)
    looking.close()

    assert 18.71 == pytest.approx(half_ms, abs=0.01)
    expected = [half_ms, 100, half_ms / 4 / 0.09, half_ms, 100]
    assert expected == pytest.approx(mean_ms, rel=0.03)


def test_lock_that_needs_most_looks_decides() -> None:
    """
    All are looked at as often as the one whose share is nearest to one half.
    """
    looking = _Looking(3)
    for pid in (7, 8, 9):
        looking.add(pid)
    for n in range(3000):
        looking.sleep()
        looking.sample(7, False)
        looking.sample(8, n % 2 == 0)
        looking.sample(9, True)
    both_ms = looking.sampler.mean_gap_ns / _MS
    looking.sampler.drop(8)
    alone_ms = looking.sampler.mean_gap_ns / _MS
    looking.close()

    assert (18.71, 100) == pytest.approx((both_ms, alone_ms), abs=0.02)


def test_windows_need_no_looks() -> None:
    """
    A process that is in a window all the time keeps nobody awake; after that all is as before.
    """
    looking, mean_ms = _Looking(3), []
    looking.add(7)
    for coverage in (NEVER_OPEN, Coverage(0, 1), Coverage(1, _NEVER_NS)):
        looking.sampler.cover(7, coverage)
        looking.at_ns += 1
        looking.sample(7, True)
        mean_ms.append(looking.sampler.mean_gap_ns / _MS)
    looking.close()

    assert (18.71, 100, 18.71) == pytest.approx(tuple(mean_ms), abs=0.01)


@pytest.mark.parametrize(
    ("held_s", "free_s"),
    [(0.002, 0.008), (0.004, 0.004), (0.1, 0.9), (0.5, 4.5), (2, 8), (5, 15), (30, 30)],
)
def test_minute_is_right_to_two_points(held_s: float, free_s: float) -> None:
    """
    However long it takes the lock to go round: 95 % of all minutes, and the mean to 0.25 points.
    """
    random = Random(5)  # noqa: S311 - the same each time
    errors = []
    for seed in range(8):
        looking, phase_s = _Looking(seed), random.uniform(0, held_s + free_s)
        looking.add(7)
        for _ in range(15):
            begin_s, before = looking.at_ns / _S, looking.figures(7)
            while looking.at_ns / _S < begin_s + 60:
                looking.sleep()
                at_s = looking.at_ns / _S + phase_s
                looking.sample(7, at_s % (held_s + free_s) < held_s)
            after, end_s = looking.figures(7), looking.at_ns / _S
            true_s = _held_s(end_s + phase_s, held_s, free_s)
            true_s -= _held_s(begin_s + phase_s, held_s, free_s)
            errors.append(((after[0] - before[0]) / _S - true_s) / (end_s - begin_s))
        looking.close()

    assert sum(abs(error) < 0.02 for error in errors) >= 0.95 * len(errors)
    assert abs(sum(errors) / len(errors)) < 0.0025


def _held_s(until_s: float, held_s: float, free_s: float) -> float:
    whole, rest_s = divmod(until_s, held_s + free_s)
    return whole * held_s + min(rest_s, held_s)


def test_gaps_are_never_alike() -> None:
    """
    From half to one and a half times their mean all are equally likely: no circle can keep step.
    """
    sampler = Sampler(3, GLIBC_X86_64.locked, CPU_SHARE)
    # What is planned, not how well it is kept.
    parts = [sampler.next_gap_ns() / sampler.mean_gap_ns for _ in range(4000)]

    quarters = Counter(int((part - 0.5) * 4) for part in parts)
    assert {0, 1, 2, 3} == set(quarters)
    assert all(850 < count < 1150 for count in quarters.values())
    # Nor do two agents, or two that follow each other, look at the same times.
    assert (
        parts[0] != Sampler(4, GLIBC_X86_64.locked, CPU_SHARE).next_gap_ns() / sampler.mean_gap_ns
    )
