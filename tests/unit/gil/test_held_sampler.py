"""Held time from looks at a lock: the arithmetic, and the thread that looks."""

import errno
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import pytest

from gilscope.gil.held_sampler import CPU_SHARE, HeldEstimate, HeldSampler, mean_gap_ns

_MS = 1_000_000
_S = 1000 * _MS
_COND = 0x5000


def _figures(estimate: HeldEstimate) -> tuple[int, int, int, int]:
    return estimate.held_ns, estimate.sampled_ns, estimate.unobserved_ns, estimate.looks


def test_each_look_decides_for_the_time_since_the_last_one() -> None:
    """
    Held at a look: the gap before it counts as held; free: it does not.
    """
    estimate = HeldEstimate(100, 0)

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
    estimate = HeldEstimate(0, 1000)

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
    estimate = HeldEstimate(0, 0)
    told = [0, 40, 0, 60, 90, 90, 90]

    seen = []
    for index, observed_ns in enumerate(told, start=1):
        estimate.credit(20 * index, True, observed_ns)
        seen.append(estimate.held_ns)

    assert sorted(seen) == seen
    assert 140 - 90 == estimate.held_ns == estimate.sampled_ns


def test_clock_that_seems_to_stand_still() -> None:
    """
    Two looks at the same time, or in the wrong order, as two threads may do it, add nothing.
    """
    estimate = HeldEstimate(0, 0)
    estimate.credit(100, True, 0)
    estimate.credit(100, True, 0)
    estimate.credit(90, True, 0)

    assert (100, 100, 0, 1) == _figures(estimate)
    estimate.credit(110, True, 0)
    assert (110, 110, 0, 2) == _figures(estimate)


@pytest.mark.parametrize("is_locked", [True, False])
def test_agent_that_was_stopped(is_locked: bool) -> None:  # noqa: FBT001
    """
    What lies between looks that are seconds apart is unknown, less what windows have covered.
    """
    estimate = HeldEstimate(0, 0)
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
    estimate = HeldEstimate(0, 0)

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
        estimate = HeldEstimate(at_ns, observed_ns)
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
    (7.0, 3.0),  # every 10 ms, as often as looks are planned
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
        estimate = HeldEstimate(at_ns, observed_ns)
        for _ in range(500):
            gap_ns = int(10 * _MS * random.uniform(0.5, 1.5))
            at_ns += gap_ns
            if with_windows and random.random() < 0.2:
                observed_ns += int(gap_ns * random.random())
            is_locked = (at_ns + phase_ns) % period_ns < held_part_ns
            estimate.credit(at_ns, is_locked, observed_ns)
        held_ns += estimate.held_ns
        sampled_ns += estimate.sampled_ns

    # 20000 looks, in 40 runs that are independent whatever the length of the circle.
    assert held_ms / (held_ms + free_ms) == pytest.approx(held_ns / sampled_ns, abs=0.02)


@pytest.mark.parametrize(
    ("cost_us", "expected_ms"), [(0, 10), (35, 10), (72, 20), (180, 50), (360, 100), (5000, 100)]
)
def test_pace_keeps_to_its_share_of_a_core(cost_us: float, expected_ms: float) -> None:
    """
    Nine tenths of 0.4 % are planned for; never more than 100 or less than 10 looks a second.
    """
    assert expected_ms * _MS == pytest.approx(mean_gap_ns(cost_us * 1000, CPU_SHARE))


class Locks:
    """Memory in which `locked` of each lock is what the test says, and every read is noted."""

    def __init__(self) -> None:
        self.locked: dict[int, int] = {}
        self.reads = 0
        self.has_read = threading.Event()

    def read(self, address: int, size: int) -> bytes:
        """Return the int at *address*; fails where there is no lock."""
        self.reads += 1
        self.has_read.set()
        locked = self.locked.get(address + 16)
        if locked is None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return locked.to_bytes(size, "little", signed=True)

    def await_look(self) -> None:
        """Return after the next one that has not yet begun."""
        for _ in range(2):
            self.has_read.clear()
            assert self.has_read.wait(30)


@contextmanager
def _sampler(observed_ns: Callable[[int, int], int] = lambda _pid, _at: 0) -> Iterator[HeldSampler]:
    sampler = HeldSampler(observed_ns, Random(3))  # noqa: S311 - as above
    yield sampler
    sampler.close()


def test_every_lock_of_every_process_is_looked_at() -> None:
    """
    Each has its own figures: 1 is held, 0 is free, and so is a lock that is not there any more.
    """
    one, two = Locks(), Locks()
    one.locked = {_COND: 1, _COND + 0x100: 0, _COND + 0x200: -1}
    two.locked = {_COND: 0}
    with _sampler() as sampler:
        for cond in one.locked:
            sampler.add(7, cond, one)
        sampler.add(8, _COND, two)
        for locks in (one, two):
            locks.await_look()
        sampler.look(7)
        sampler.look(8)

    assert 0 < sampler.held_ns(7, _COND) == sampler.sampled_ns(7, _COND)
    for pid, cond in ((7, _COND + 0x100), (7, _COND + 0x200), (8, _COND)):
        assert 0 == sampler.held_ns(pid, cond) < sampler.sampled_ns(pid, cond)
    assert 0 == sampler.unobserved_ns(7, _COND)


def test_memory_that_cannot_be_read() -> None:
    """
    A lock in a process that is gone stays as it is; the others go on.
    """
    one, two = Locks(), Locks()
    one.locked, two.locked = {_COND: 1}, {_COND: 1}
    with _sampler() as sampler:
        sampler.add(7, _COND, one)
        sampler.add(8, _COND, two)
        one.await_look()
        one.locked.clear()
        one.await_look()
        held_ns, other_ns = sampler.held_ns(7, _COND), sampler.held_ns(8, _COND)
        one.await_look()
        two.await_look()
        sampler.look(7)
        sampler.look(8)

    assert held_ns == sampler.held_ns(7, _COND) == sampler.sampled_ns(7, _COND)
    assert other_ns < sampler.held_ns(8, _COND)


def test_windows_are_asked_for_each_process() -> None:
    """
    A process that is covered all the time has no sampled time, its neighbour has.
    """
    locks = Locks()
    locks.locked = {_COND: 1}
    with _sampler(lambda pid, at_ns: at_ns if pid == 7 else 0) as sampler:
        sampler.add(7, _COND, locks)
        sampler.add(8, _COND, locks)
        locks.await_look()
        sampler.look(7)
        sampler.look(8)

    assert 0 == sampler.held_ns(7, _COND) == sampler.sampled_ns(7, _COND)
    assert 0 < sampler.held_ns(8, _COND)


def test_dropped_process_is_not_touched() -> None:
    """
    Once `drop` has returned nothing is read; its figures are gone, those of others are not.
    """
    one, two = Locks(), Locks()
    one.locked, two.locked = {_COND: 1}, {_COND: 1}
    with _sampler() as sampler:
        sampler.add(7, _COND, one)
        sampler.add(8, _COND, two)
        one.await_look()
        sampler.drop(7)
        reads = one.reads
        for _ in range(3):
            two.await_look()
        sampler.look(7)
        sampler.drop(7)

        assert reads == one.reads
        with pytest.raises(KeyError):
            sampler.held_ns(7, _COND)
        assert 0 < sampler.held_ns(8, _COND)


def test_process_that_is_dropped_during_a_look() -> None:
    """
    A look that has begun and has not yet read does not read any more.
    """
    is_looking, go_on = threading.Event(), threading.Event()

    def observed_ns(_pid: int, _at_ns: int) -> int:
        if threading.current_thread() is not threading.main_thread():
            is_looking.set()
            assert go_on.wait(30)
        return 0

    locks = Locks()
    locks.locked = {_COND: 1}
    with _sampler(observed_ns) as sampler:
        sampler.add(7, _COND, locks)
        assert is_looking.wait(30)
        sampler.drop(7)
        go_on.set()

    assert 0 == locks.reads


def test_lock_that_is_added_twice() -> None:
    """
    It goes on with what it has.
    """
    locks = Locks()
    locks.locked = {_COND: 1}
    with _sampler() as sampler:
        sampler.add(7, _COND, locks)
        locks.await_look()
        held_ns = sampler.held_ns(7, _COND)
        sampler.add(7, _COND, locks)

        assert 0 < held_ns <= sampler.held_ns(7, _COND)


def test_own_time_is_known_and_the_rate_follows_it() -> None:
    """
    CPU time grows with each wake-up, and gaps stay between 10 and 100 ms.
    """
    locks = Locks()
    locks.locked = {_COND: 1}
    with _sampler() as sampler:
        assert 0 == sampler.cpu_ns
        sampler.add(7, _COND, locks)
        locks.await_look()
        locks.await_look()
        first_ns = sampler.cpu_ns
        locks.await_look()
        locks.await_look()

        assert 0 < first_ns < sampler.cpu_ns
        assert 10 * _MS <= sampler.mean_gap_ns <= 100 * _MS


def test_gaps_are_never_alike() -> None:
    """
    From half to one and a half times their mean all are equally likely: no circle can keep step.
    """
    locks = Locks()
    with _sampler() as sampler:
        sampler.add(7, _COND, locks)
    # What is planned, not how well it is kept; and the thread has ended, which plans, too.
    sampler._mean_gap_ns = 20 * _MS  # noqa: SLF001
    gaps_s = [sampler._next_gap_s() for _ in range(4000)]  # noqa: SLF001

    quarters = Counter(int((gap_s - 0.010) / 0.005) for gap_s in gaps_s)
    assert {0, 1, 2, 3} == set(quarters)
    assert all(850 < count < 1150 for count in quarters.values())
    # Without locks there is nothing to wake up for.
    sampler.drop(7)
    assert -1 == sampler._next_gap_s()  # noqa: SLF001


def test_idle_sampler_sleeps_and_wakes_for_a_lock() -> None:
    """
    Without locks its thread does not run; after the last one has gone it can begin again.
    """
    locks = Locks()
    locks.locked = {_COND: 1}
    with _sampler() as sampler:
        for _ in range(2):
            sampler.add(7, _COND, locks)
            locks.await_look()
            sampler.drop(7)


def test_closing_ends_the_thread() -> None:
    """
    Also while it sleeps for want of locks, and where it was never started.
    """
    before = threading.active_count()
    with _sampler():
        assert before == threading.active_count()
    locks = Locks()
    with _sampler() as sampler:
        sampler.add(7, _COND, locks)
        assert before + 1 == threading.active_count()
        sampler.drop(7)

    assert before == threading.active_count()


def test_failure_is_told_and_ends_the_sampling(caplog: pytest.LogCaptureFixture) -> None:
    """
    An error in what is asked for window time costs held time, not the agent.
    """
    has_failed = threading.Event()

    def observed_ns(_pid: int, _at_ns: int) -> int:
        if threading.current_thread() is threading.main_thread():
            return 0
        has_failed.set()
        raise LookupError("no such window")

    locks = Locks()
    locks.locked = {_COND: 1}
    with _sampler(observed_ns) as sampler:
        sampler.add(7, _COND, locks)
        assert has_failed.wait(30)

    assert "not sampled any more" in caplog.text
    assert 0 == sampler.held_ns(7, _COND)


def test_look_that_has_nothing_to_decide_is_left_out() -> None:
    """
    What windows have covered is theirs; when they end, looks decide as if they had gone on.
    """
    estimate = HeldEstimate(0, 0)
    windows_end_ns = 10_000 * _MS

    assert not any(
        estimate.wants_look(at_ns, at_ns) for at_ns in range(_MS, windows_end_ns, 100 * _MS)
    )
    assert estimate.wants_look(windows_end_ns, windows_end_ns - 40 * _MS)
    estimate.credit(windows_end_ns, True, windows_end_ns - 40 * _MS)
    assert (40 * _MS, 40 * _MS, 0, 1) == _figures(estimate)
