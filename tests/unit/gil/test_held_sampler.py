"""Held time from looks at a lock: the thread that looks."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from gilscope.gil import held_sampler
from gilscope.gil._held_sampler import Sampler
from gilscope.gil.held_sampler import CPU_SHARE, HeldSampler
from gilscope.gil.window import NEVER_OPEN, Coverage
from unit.gil.lock_file import MakeLocks

_MS = 1_000_000
_COND = 0x5000
_NEVER_NS = (1 << 64) - 1


@contextmanager
def _sampler() -> Iterator[HeldSampler]:
    sampler = HeldSampler(Random(3))  # noqa: S311 - as above
    yield sampler
    sampler.close()


def test_every_lock_of_every_process_is_looked_at(lock_file: MakeLocks) -> None:
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


def test_memory_that_cannot_be_read(lock_file: MakeLocks) -> None:
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


def test_windows_are_those_of_each_process(lock_file: MakeLocks) -> None:
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


def test_dropped_process_is_not_touched(lock_file: MakeLocks) -> None:
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


def test_many_processes_come_and_go(lock_file: MakeLocks) -> None:
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


def test_lock_that_is_added_twice(lock_file: MakeLocks) -> None:
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


def test_own_time_is_known_and_the_rate_follows_it(lock_file: MakeLocks) -> None:
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


def test_idle_sampler_sleeps_and_wakes_for_a_lock(lock_file: MakeLocks) -> None:
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


def test_lock_comes_after_the_last_one_has_gone(lock_file: MakeLocks) -> None:
    """
    The sampler can begin again.
    """
    locks = lock_file({_COND: 1})
    with _sampler() as sampler:
        for _ in range(2):
            sampler.add(7, _COND, locks)
            locks.await_look()
            sampler.drop(7)


def test_closing_ends_the_thread(lock_file: MakeLocks) -> None:
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
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, lock_file: MakeLocks
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


def test_looks_go_on_while_others_compute(lock_file: MakeLocks) -> None:
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
