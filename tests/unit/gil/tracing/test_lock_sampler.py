"""Held time from samples at a lock: the thread that samples."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from gilscope.gil.probes.coverage import NEVER_OPEN, Coverage
from gilscope.gil.tracing import lock_sampler
from gilscope.gil.tracing._lock_sampler import Sampler
from gilscope.gil.tracing.lock_sampler import CPU_SHARE, LockSampler
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64
from support.gil.lock_page import MakeLocks

_MS = 1_000_000
_NEVER_NS = (1 << 64) - 1


@contextmanager
def _sampler() -> Iterator[LockSampler]:
    sampler = LockSampler(Random(3))  # noqa: S311 - as above
    yield sampler
    sampler.close()


def _await_sample(sampler: LockSampler, pid: int, cond: int) -> None:
    """Return after the next sample that has not yet begun."""
    samples, until_s = sampler.figures(pid, cond).samples, time.monotonic() + 30
    while sampler.figures(pid, cond).samples < samples + 2:  # one may be going on now
        assert time.monotonic() < until_s
        time.sleep(0.001)


def test_every_lock_of_every_process_is_looked_at(lock_page: MakeLocks) -> None:
    """
    Each has its own figures: 1 is held, 0 is free, and so is a lock that is not there any more.
    """
    one, two = lock_page(1, 0, -1), lock_page(0)
    held, *free = one.conds
    (other,) = two.conds
    with _sampler() as sampler:
        for cond in one.conds:
            sampler.add(7, cond, one)
        sampler.add(8, other, two)
        _await_sample(sampler, 7, held)
        _await_sample(sampler, 8, other)
        sampler.sample(7)
        sampler.sample(8)

    assert 0 < sampler.figures(7, held).held_ns == sampler.figures(7, held).sampled_ns
    for pid, cond in (*((7, cond) for cond in free), (8, other)):
        assert 0 == sampler.figures(pid, cond).held_ns < sampler.figures(pid, cond).sampled_ns
    assert 0 == sampler.figures(7, held).unobserved_ns


def test_memory_that_cannot_be_read(lock_page: MakeLocks) -> None:
    """
    A lock in a process that is gone stays as it is; the others go on.
    """
    one, two = lock_page(1), lock_page(1)
    ((cond,), (other,)) = one.conds, two.conds
    with _sampler() as sampler:
        sampler.add(7, cond, one)
        sampler.add(8, other, two)
        _await_sample(sampler, 7, cond)
        one.vanish()
        _await_sample(sampler, 8, other)
        held_ns, other_ns = sampler.figures(7, cond).held_ns, sampler.figures(8, other).held_ns
        _await_sample(sampler, 8, other)
        sampler.sample(7)
        sampler.sample(8)

    assert 0 < held_ns == sampler.figures(7, cond).held_ns == sampler.figures(7, cond).sampled_ns
    assert other_ns < sampler.figures(8, other).held_ns


def test_windows_are_those_of_each_process(lock_page: MakeLocks) -> None:
    """
    A process that is covered all the time has no sampled time, its neighbour has.
    """
    one, two = lock_page(1), lock_page(1)
    ((cond,), (other,)) = one.conds, two.conds
    with _sampler() as sampler:
        sampler.add(7, cond, one, Coverage(0, 0))
        sampler.add(8, other, two, Coverage(0, _NEVER_NS))
        sampler.cover(9, Coverage(0, 0))  # whose locks are not known yet, or not any more
        _await_sample(sampler, 8, other)
        sampler.sample(7)
        sampler.sample(8)

    assert (0, 0, 0) == (
        sampler.figures(7, cond).held_ns,
        sampler.figures(7, cond).sampled_ns,
        sampler.figures(7, cond).samples,
    )
    assert 0 < sampler.figures(8, other).held_ns


def test_dropped_process_is_not_touched(lock_page: MakeLocks) -> None:
    """
    No read begins once `drop` has returned; its figures are gone, those of others are not.
    """
    sampler, one, two = Sampler(3, GLIBC_X86_64.locked, CPU_SHARE), lock_page(1), lock_page(1)
    ((cond,), (other,)) = one.conds, two.conds
    for pid, page in ((7, one), (8, two)):
        sampler.add(pid, page.conds[0], page.thread_id, page.fileno(), 0, NEVER_OPEN)
    sampler.sample(7, _MS)
    sampler.drop(7)
    assert (0, 1, False) == sampler.reading()
    for at_ms in range(1, 4):
        sampler.sample(7, at_ms * _MS)
        sampler.sample(8, at_ms * _MS)
    sampler.drop(7)

    assert (0, 4, False) == sampler.reading()
    with pytest.raises(KeyError):
        sampler.figures(7, cond)
    assert 3 * _MS == sampler.figures(8, other)[0]


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - with one more for itself, each time


@pytest.mark.usefixtures("nothing_is_collected")
def test_memory_is_kept_open_for_as_long_as_it_is_looked_at(lock_page: MakeLocks) -> None:
    """
    By a descriptor of the sampler's own, one for all locks of a process, which is given back.
    """
    sampler, locks = Sampler(3, GLIBC_X86_64.locked, CPU_SHARE), lock_page(1, 0)
    before = _descriptors()
    for cond in locks.conds:
        sampler.add(7, cond, locks.thread_id, locks.fileno(), 0, NEVER_OPEN)
    assert before + 1 == _descriptors()
    sampler.sample(7, _MS)
    sampler.drop(7)
    assert before == _descriptors()
    sampler.add(7, locks.conds[0], locks.thread_id, locks.fileno(), 0, NEVER_OPEN)
    del sampler
    assert before == _descriptors()


def test_many_processes_come_and_go(lock_page: MakeLocks) -> None:
    """
    Each keeps its own figures, whichever others are dropped beside it.
    """
    locks = lock_page(1, 0)
    held, free = locks.conds
    with _sampler() as sampler:
        for pid in range(100):
            sampler.add(pid, held, locks)
            sampler.add(pid, free, locks)
        for pid in range(0, 100, 3):
            sampler.drop(pid)
        for pid in range(100):
            if pid % 3 == 0:
                with pytest.raises(KeyError):
                    sampler.figures(pid, held)
                continue
            sampler.sample(pid)
            assert 0 < sampler.figures(pid, held).held_ns
            assert 0 == sampler.figures(pid, free).held_ns


def test_lock_that_is_added_twice(lock_page: MakeLocks) -> None:
    """
    It goes on with what it has.
    """
    locks = lock_page(1)
    (cond,) = locks.conds
    with _sampler() as sampler:
        sampler.add(7, cond, locks)
        _await_sample(sampler, 7, cond)
        held_ns = sampler.figures(7, cond).held_ns
        sampler.add(7, cond, locks)

        assert 0 < held_ns <= sampler.figures(7, cond).held_ns


def test_own_time_is_known_and_the_rate_follows_it(lock_page: MakeLocks) -> None:
    """
    CPU time grows with each wake-up, and gaps stay between 10 and 100 ms.
    """
    locks = lock_page(1)
    (cond,) = locks.conds
    with _sampler() as sampler:
        assert 0 == sampler.cpu_ns
        sampler.add(7, cond, locks)
        _await_sample(sampler, 7, cond)
        first_ns = sampler.cpu_ns
        _await_sample(sampler, 7, cond)
        _await_sample(sampler, 7, cond)

        assert 0 < first_ns < sampler.cpu_ns
        assert 10 * _MS <= sampler.mean_gap_ns <= 100 * _MS


def test_idle_sampler_sleeps_and_wakes_for_a_lock(lock_page: MakeLocks) -> None:
    """
    Without locks its thread does not run; when the first one comes it begins.
    """
    locks, sampler = lock_page(1), Sampler(3, GLIBC_X86_64.locked, CPU_SHARE)
    (cond,) = locks.conds
    thread = threading.Thread(target=sampler.run)
    thread.start()
    while not _is_asleep(thread):
        pass
    assert 0 == sampler.cpu_ns
    sampler.add(7, cond, locks.thread_id, locks.fileno(), time.monotonic_ns(), NEVER_OPEN)
    until_s = time.monotonic() + 30
    while not sampler.figures(7, cond)[3]:
        assert time.monotonic() < until_s
    sampler.close()
    thread.join()


def _is_asleep(thread: threading.Thread) -> bool:
    stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    return stat.rpartition(") ")[2].startswith("S")


def test_lock_comes_after_the_last_one_has_gone(lock_page: MakeLocks) -> None:
    """
    The sampler can begin again.
    """
    locks = lock_page(1)
    with _sampler() as sampler:
        for _ in range(2):
            sampler.add(7, locks.conds[0], locks)
            _await_sample(sampler, 7, locks.conds[0])
            sampler.drop(7)


def test_closing_ends_the_thread(lock_page: MakeLocks) -> None:
    """
    Also while it sleeps for want of locks, and where it was never started.
    """
    before = threading.active_count()
    with _sampler():
        assert before == threading.active_count()
    locks = lock_page(1)
    with _sampler() as sampler:
        sampler.add(7, locks.conds[0], locks)
        assert before + 1 == threading.active_count()
        sampler.drop(7)

    assert before == threading.active_count()


def test_failure_is_told_and_ends_the_sampling(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, lock_page: MakeLocks
) -> None:
    """
    What goes wrong in the thread costs held time, not the agent.
    """
    has_failed = threading.Event()

    def wake_promptly() -> bool:
        has_failed.set()
        raise LookupError("no such priority")

    monkeypatch.setattr(lock_sampler, "wake_promptly", wake_promptly)
    locks = lock_page(1)
    with _sampler() as sampler:
        sampler.add(7, locks.conds[0], locks)
        assert has_failed.wait(30)

    assert "not sampled any more" in caplog.text
    assert 0 == sampler.figures(7, locks.conds[0]).held_ns


def test_looks_go_on_while_others_compute(lock_page: MakeLocks) -> None:
    """
    The thread does not need the agent's own GIL, which a scrape may hold for long.
    """
    locks = lock_page(1)
    (cond,) = locks.conds
    interval_s = sys.getswitchinterval()
    with _sampler() as sampler:
        sampler.add(7, cond, locks)
        _await_sample(sampler, 7, cond)
        sys.setswitchinterval(60)
        try:
            samples, until_s = sampler.figures(7, cond).samples, time.monotonic() + 30
            while sampler.figures(7, cond).samples < samples + 3:
                assert time.monotonic() < until_s
        finally:
            sys.setswitchinterval(interval_s)


class _Hanging:
    """Native samplers of which the first waits for memory of process 7 for ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock_s = 1000.0
        self.hangs = True
        monkeypatch.setattr(lock_sampler, "waits_for_memory", lambda _thread: self.hangs)
        monkeypatch.setattr("gilscope.system.waiting_thread.time.monotonic", lambda: self.clock_s)

    def unanswered(self, sampler: LockSampler, for_s: float) -> list[int | None]:
        """Ask ten times a second."""
        told = []
        for _ in range(round(10 * for_s)):
            self.clock_s += 0.1
            told.append(sampler.unanswered())
        return told


class _Native:
    """Stands in for the thread in C."""

    made: ClassVar[list["_Native"]] = []

    def __init__(self, *_: object) -> None:
        self.locks: dict[tuple[int, int], int] = {}
        self.closed = threading.Event()
        self.cpu_ns = 1000
        self.made.append(self)

    def add(self, pid: int, cond: int, *_: object) -> None:
        self.locks.setdefault((pid, cond), 5 * _MS)

    def drop(self, pid: int) -> None:
        self.locks = {key: held for key, held in self.locks.items() if key[0] != pid}

    def figures(self, pid: int, cond: int) -> tuple[int, int, int, int]:
        return (self.locks[pid, cond], 6 * _MS, 0, 3)

    def reading(self) -> tuple[int, int, bool]:
        return next(((pid, 4, False) for pid, _ in self.locks if pid == 7), (0, 9, False))

    def run(self) -> None:
        self.closed.wait(30)

    def close(self) -> None:
        self.closed.set()


def test_process_whose_memory_does_not_answer_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, lock_page: MakeLocks
) -> None:
    """
    After two seconds another thread goes on with the others, whose figures go on from theirs.
    """
    monkeypatch.setattr(_Native, "made", [])
    monkeypatch.setattr(lock_sampler, "Sampler", _Native)
    hanging, locks = _Hanging(monkeypatch), lock_page(1)
    with _sampler() as sampler:
        for pid in (6, 7, 8):
            sampler.add(pid, locks.conds[0], locks)
        assert {None} == set(hanging.unanswered(sampler, 1.9))
        hanging.hangs = False
        assert {None} == set(hanging.unanswered(sampler, 5))  # the machine was busy, that is all
        hanging.hangs = True
        told = hanging.unanswered(sampler, 2)

        assert [7] == [pid for pid in told if pid is not None]
        first, second = _Native.made
        assert first.closed.is_set()
        assert not first.locks
        assert {(6, locks.conds[0]), (8, locks.conds[0])} == set(second.locks)
        assert 10 * _MS == sampler.figures(6, locks.conds[0]).held_ns
        assert 2000 == sampler.cpu_ns
        with pytest.raises(KeyError):
            sampler.figures(7, locks.conds[0])


def test_threads_that_hang_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    lock_page: MakeLocks,
) -> None:
    """
    When so many do, nothing is sampled any more, and that is told.
    """
    monkeypatch.setattr(_Native, "made", [])
    monkeypatch.setattr(_Native, "close", lambda _self: None)
    monkeypatch.setattr(lock_sampler, "Sampler", _Native)
    hanging, locks = _Hanging(monkeypatch), lock_page(1)
    sampler = LockSampler(Random(3))  # noqa: S311 - as above
    for _ in range(9):
        assert not caplog.text
        sampler.add(6, locks.conds[0], locks)
        sampler.add(7, locks.conds[0], locks)
        assert 7 in hanging.unanswered(sampler, 3)
    before = threading.active_count()
    sampler.add(8, locks.conds[0], locks)
    assert before == threading.active_count()
    for native in _Native.made:
        native.closed.set()

    assert "not sampled any more" in caplog.text
    assert 10 == len(_Native.made)
