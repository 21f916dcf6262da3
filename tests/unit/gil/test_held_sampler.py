"""Held time from looks at a lock: the arithmetic, and the thread that looks."""

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from random import Random

import pytest

from gilscope.gil import held_sampler
from gilscope.gil._held_sampler import Sampler, mean_gap_ns
from gilscope.gil.held_sampler import CPU_SHARE, HeldSampler
from gilscope.gil.window import NEVER_OPEN, Coverage
from unit.gil.lock_file import LockFile

_MS = 1_000_000
_S = 1000 * _MS
_COND = 0x5000
_NEVER_NS = (1 << 64) - 1


class _Estimate:
    """What is known of one lock, looked at when the test says so."""

    _memory = os.memfd_create("locks")
    _sampler = Sampler(3, CPU_SHARE)
    _pids = count(1)

    def __init__(self, at_ns: int, observed_ns: int) -> None:
        self._pid = next(self._pids)
        coverage = Coverage(observed_ns, _NEVER_NS)
        self._sampler.add(self._pid, _COND, self._memory, at_ns, coverage)

    def credit(self, at_ns: int, locked: bool, observed_ns: int) -> None:  # noqa: FBT001
        os.pwrite(self._memory, bytes((locked, 0, 0, 0)), _COND - 16)
        self._sampler.cover(self._pid, Coverage(observed_ns, _NEVER_NS))
        self._sampler.look(self._pid, at_ns)

    @property
    def figures(self) -> tuple[int, int, int, int]:
        return self._sampler.figures(self._pid, _COND)

    @property
    def held_ns(self) -> int:
        return self.figures[0]

    @property
    def sampled_ns(self) -> int:
        return self.figures[1]


def _figures(estimate: _Estimate) -> tuple[int, int, int, int]:
    return estimate.figures


def test_each_look_decides_for_the_time_since_the_last_one() -> None:
    """
    Held at a look: the gap before it counts as held; free: it does not.
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
    Two looks at the same time, or in the wrong order, as two threads may do it, add nothing.
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
    What lies between looks that are seconds apart is unknown, less what windows have covered.
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

    # 20000 looks, in 40 runs that are independent whatever the length of the circle.
    assert held_ms / (held_ms + free_ms) == pytest.approx(held_ns / sampled_ns, abs=0.02)


@pytest.mark.parametrize(
    ("cost_us", "expected_ms"), [(0, 10), (17, 10), (36, 20), (90, 50), (180, 100), (5000, 100)]
)
def test_pace_keeps_to_its_share_of_a_core(cost_us: float, expected_ms: float) -> None:
    """
    Nine tenths of 0.2 % are planned for; never more than 100 or less than 10 looks a second.
    """
    assert expected_ms * _MS == pytest.approx(mean_gap_ns(cost_us * 1000, CPU_SHARE))


@contextmanager
def _sampler() -> Iterator[HeldSampler]:
    sampler = HeldSampler(Random(3))  # noqa: S311 - as above
    yield sampler
    sampler.close()


@pytest.fixture
def lock_file(tmp_path: Path) -> Iterator[Callable[[dict[int, int]], LockFile]]:
    """What makes files of locks, which are closed in the end."""
    with ExitStack() as stack:

        def make(locked: dict[int, int]) -> LockFile:
            made = LockFile(tmp_path, locked)
            stack.callback(made.close)
            return made

        yield make


_Make = Callable[[dict[int, int]], LockFile]


def test_every_lock_of_every_process_is_looked_at(lock_file: _Make) -> None:
    """
    Each has its own figures: 1 is held, 0 is free, and so is a lock that is not there any more.
    """
    locked = {_COND: 1, _COND + 0x100: 0, _COND + 0x200: -1}
    one, two = lock_file(locked), lock_file({_COND: 0})
    with _sampler() as sampler:
        for cond in locked:
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


def test_memory_that_cannot_be_read(lock_file: _Make) -> None:
    """
    A lock in a process that is gone stays as it is; the others go on.
    """
    one, two = lock_file({_COND: 1}), lock_file({_COND: 1})
    with _sampler() as sampler:
        sampler.add(7, _COND, one)
        sampler.add(8, _COND, two)
        one.await_look()
        one.vanish()
        two.await_look()
        held_ns, other_ns = sampler.held_ns(7, _COND), sampler.held_ns(8, _COND)
        two.await_look()
        sampler.look(7)
        sampler.look(8)

    assert 0 < held_ns == sampler.held_ns(7, _COND) == sampler.sampled_ns(7, _COND)
    assert other_ns < sampler.held_ns(8, _COND)


def test_windows_are_those_of_each_process(lock_file: _Make) -> None:
    """
    A process that is covered all the time has no sampled time and is not read, its neighbour is.
    """
    one, two = lock_file({_COND: 1}), lock_file({_COND: 1})
    with _sampler() as sampler:
        sampler.add(7, _COND, one, Coverage(0, 0))
        sampler.add(8, _COND, two, Coverage(0, _NEVER_NS))
        sampler.cover(9, Coverage(0, 0))  # whose locks are not known yet, or not any more
        two.await_look()
        sampler.look(7)
        sampler.look(8)

    assert 0 == sampler.held_ns(7, _COND) == sampler.sampled_ns(7, _COND)
    assert not one.was_read()
    assert 0 < sampler.held_ns(8, _COND)


def test_window_begins_and_ends_between_looks() -> None:
    """
    Its time is left out from its beginning, told at once, and comes to what its end says.
    """
    sampler, memory = Sampler(3, CPU_SHARE), os.memfd_create("locks")
    os.pwrite(memory, bytes((1, 0, 0, 0)), _COND - 16)
    sampler.add(7, _COND, memory, 1000, Coverage(300, _NEVER_NS))
    sampler.look(7, 1100)
    sampler.cover(7, Coverage(300, 1140))
    sampler.look(7, 1200)
    seen = [sampler.figures(7, _COND)]
    sampler.look(7, 1250)
    seen.append(sampler.figures(7, _COND))
    # It had used up its traps before that.
    sampler.cover(7, Coverage(300 + 100, _NEVER_NS))
    sampler.look(7, 1300)
    seen.append(sampler.figures(7, _COND))
    os.close(memory)

    assert [(140, 140, 0, 2), (140, 140, 0, 2), (190, 190, 0, 3)] == seen


def test_dropped_process_is_not_touched(lock_file: _Make) -> None:
    """
    Once `drop` has returned nothing is read; its figures are gone, those of others are not.
    """
    one, two = lock_file({_COND: 1}), lock_file({_COND: 1})
    with _sampler() as sampler:
        sampler.add(7, _COND, one)
        sampler.add(8, _COND, two)
        one.await_look()
        two.await_look()
        sampler.drop(7)
        one.was_read()
        for _ in range(3):
            two.await_look()
        sampler.look(7)
        sampler.drop(7)

        assert not one.was_read()
        with pytest.raises(KeyError):
            sampler.held_ns(7, _COND)
        assert 0 < sampler.held_ns(8, _COND)


def test_many_processes_come_and_go(lock_file: _Make) -> None:
    """
    Each keeps its own figures, whichever others are dropped beside it.
    """
    locks = lock_file({_COND: 1, _COND + 0x100: 0})
    with _sampler() as sampler:
        for pid in range(100):
            sampler.add(pid, _COND, locks)
            sampler.add(pid, _COND + 0x100, locks)
        for pid in range(0, 100, 3):
            sampler.drop(pid)
        for pid in range(100):
            if pid % 3 == 0:
                with pytest.raises(KeyError):
                    sampler.looks(pid, _COND)
                continue
            sampler.look(pid)
            assert 0 < sampler.held_ns(pid, _COND)
            assert 0 == sampler.held_ns(pid, _COND + 0x100)


def test_lock_that_is_added_twice(lock_file: _Make) -> None:
    """
    It goes on with what it has.
    """
    locks = lock_file({_COND: 1})
    with _sampler() as sampler:
        sampler.add(7, _COND, locks)
        locks.await_look()
        held_ns = sampler.held_ns(7, _COND)
        sampler.add(7, _COND, locks)

        assert 0 < held_ns <= sampler.held_ns(7, _COND)


def test_own_time_is_known_and_the_rate_follows_it(lock_file: _Make) -> None:
    """
    CPU time grows with each wake-up, and gaps stay between 10 and 100 ms.
    """
    locks = lock_file({_COND: 1})
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


_ERROR = 0.018
_ENOUGH = (1.96 * 1.04 / _ERROR) ** 2 / 60


class _Looking:
    """A sampler in simulated time, which sleeps as long as it wants to."""

    def __init__(self, seed: int) -> None:
        self.sampler = Sampler(seed, CPU_SHARE, _ENOUGH)
        self.at_ns = 0
        self._memory = os.memfd_create("locks")

    def add(self, pid: int) -> None:
        self.sampler.add(pid, _COND, self._memory, self.at_ns, NEVER_OPEN)

    def look(self, pid: int, locked: bool) -> None:  # noqa: FBT001
        os.pwrite(self._memory, bytes((locked, 0, 0, 0)), _COND - 16)
        self.sampler.look(pid, self.at_ns)

    def sleep(self) -> None:
        self.at_ns += self.sampler.next_gap_ns()

    def close(self) -> None:
        os.close(self._memory)


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
            looking.look(7, is_locked(n))
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
        looking.look(7, False)
        looking.look(8, n % 2 == 0)
        looking.look(9, True)
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
        looking.look(7, True)
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
            begin_s, before = looking.at_ns / _S, looking.sampler.figures(7, _COND)
            while looking.at_ns / _S < begin_s + 60:
                looking.sleep()
                at_s = looking.at_ns / _S + phase_s
                looking.look(7, at_s % (held_s + free_s) < held_s)
            after, end_s = looking.sampler.figures(7, _COND), looking.at_ns / _S
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
    sampler = Sampler(3, CPU_SHARE)
    # What is planned, not how well it is kept.
    parts = [sampler.next_gap_ns() / sampler.mean_gap_ns for _ in range(4000)]

    quarters = Counter(int((part - 0.5) * 4) for part in parts)
    assert {0, 1, 2, 3} == set(quarters)
    assert all(850 < count < 1150 for count in quarters.values())
    # Nor do two agents, or two that follow each other, look at the same times.
    assert parts[0] != Sampler(4, CPU_SHARE).next_gap_ns() / sampler.mean_gap_ns


def test_idle_sampler_sleeps_and_wakes_for_a_lock(lock_file: _Make) -> None:
    """
    Without locks its thread does not run; when the first one comes it begins.
    """
    locks, sampler = lock_file({_COND: 1}), Sampler(3, CPU_SHARE)
    thread = threading.Thread(target=sampler.run)
    thread.start()
    while not _is_asleep(thread):
        pass
    assert 0 == sampler.cpu_ns
    sampler.add(7, _COND, locks.fileno(), time.monotonic_ns(), NEVER_OPEN)
    locks.await_look()
    sampler.close()
    thread.join()


def _is_asleep(thread: threading.Thread) -> bool:
    stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    return stat.rpartition(") ")[2].startswith("S")


def test_lock_comes_after_the_last_one_has_gone(lock_file: _Make) -> None:
    """
    The sampler can begin again.
    """
    locks = lock_file({_COND: 1})
    with _sampler() as sampler:
        for _ in range(2):
            sampler.add(7, _COND, locks)
            locks.await_look()
            sampler.drop(7)


def test_closing_ends_the_thread(lock_file: _Make) -> None:
    """
    Also while it sleeps for want of locks, and where it was never started.
    """
    before = threading.active_count()
    with _sampler():
        assert before == threading.active_count()
    locks = lock_file({_COND: 1})
    with _sampler() as sampler:
        sampler.add(7, _COND, locks)
        assert before + 1 == threading.active_count()
        sampler.drop(7)

    assert before == threading.active_count()


def test_failure_is_told_and_ends_the_sampling(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, lock_file: _Make
) -> None:
    """
    What goes wrong in the thread costs held time, not the agent.
    """
    has_failed = threading.Event()

    def wake_promptly() -> bool:
        has_failed.set()
        raise LookupError("no such priority")

    monkeypatch.setattr(held_sampler, "wake_promptly", wake_promptly)
    locks = lock_file({_COND: 1})
    with _sampler() as sampler:
        sampler.add(7, _COND, locks)
        assert has_failed.wait(30)

    assert "not sampled any more" in caplog.text
    assert 0 == sampler.held_ns(7, _COND)


def test_looks_go_on_while_others_compute(lock_file: _Make) -> None:
    """
    The thread does not need the agent's own GIL, which a scrape may hold for long.
    """
    locks = lock_file({_COND: 1})
    interval_s = sys.getswitchinterval()
    with _sampler() as sampler:
        sampler.add(7, _COND, locks)
        locks.await_look()
        sys.setswitchinterval(60)
        try:
            looks, until_s = sampler.looks(7, _COND), time.monotonic() + 30
            while sampler.looks(7, _COND) < looks + 3:
                assert time.monotonic() < until_s
        finally:
            sys.setswitchinterval(interval_s)


def test_look_that_has_nothing_to_decide_is_left_out(lock_file: _Make) -> None:
    """
    What windows have covered is theirs; when they end, looks decide as if they had gone on.
    """
    locks, sampler = lock_file({_COND: 1}), Sampler(3, CPU_SHARE)
    sampler.add(7, _COND, locks.fileno(), 0, Coverage(0, 0))
    windows_end_ns = 10_000 * _MS

    for at_ns in range(_MS, windows_end_ns, 100 * _MS):
        sampler.look(7, at_ns)
    assert not locks.was_read()
    assert (0, 0, 0, 0) == sampler.figures(7, _COND)
    sampler.cover(7, Coverage(windows_end_ns - 40 * _MS, _NEVER_NS))
    sampler.look(7, windows_end_ns)
    assert locks.was_read()
    assert (40 * _MS, 40 * _MS, 0, 1) == sampler.figures(7, _COND)
