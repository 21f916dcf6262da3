"""Threads that wait for each other."""

import pytest

from gilscope.model.gil import Gil
from gilscope.model.moment.dump import Awaited, DumpedGil, DumpedThread, Step
from gilscope.model.moment.seen import NativeLock
from gilscope.verdict.deadlock import deadlocks_of

_COND = 0x5000


def _for_gil(tid: int, cond: int = _COND) -> DumpedThread:
    return DumpedThread(tid, "", "", "S", awaited=Awaited.GIL, gil_cond=cond)


def _for_lock(tid: int, owner: int | None, address: int = 0x7000) -> DumpedThread:
    lock = NativeLock(address, owner)
    return DumpedThread(tid, "", "", "S", awaited=Awaited.LOCK, lock=lock)


def _runs(tid: int) -> DumpedThread:
    return DumpedThread(tid, "", "", "R")


def _gil(holder: int | None, cond: int = _COND) -> DumpedGil:
    return DumpedGil(Gil(cond, 0), holder is not None, holder, ())


def test_the_gil_and_a_lock() -> None:
    """
    It begins with who holds the GIL, whatever the numbers of the threads.
    """
    expected = ((Step(9, Awaited.LOCK, 0x7000), Step(2, Awaited.GIL, _COND)),)

    assert expected == deadlocks_of([_for_gil(2), _runs(3), _for_lock(9, 2)], [_gil(9)])


def test_who_waits_behind_a_deadlock_is_not_part_of_it() -> None:
    """
    Others wait for the GIL, or for the same lock, and would go on with it.
    """
    threads = [_for_gil(1), _for_gil(2), _for_lock(3, 2), _for_lock(9, 2)]
    expected = ((Step(9, Awaited.LOCK, 0x7000), Step(2, Awaited.GIL, _COND)),)

    assert expected == deadlocks_of(threads, [_gil(9)])


def test_a_longer_circle() -> None:
    """
    Over two locks.
    """
    threads = [_for_lock(1, 2, 0x7000), _for_lock(2, 3, 0x8000), _for_gil(3)]

    (circle,) = deadlocks_of(threads, [_gil(1)])

    assert [1, 2, 3] == [step.tid for step in circle]


def test_locks_alone() -> None:
    """
    Without the GIL in it; and a thread that waits for a lock of its own.
    """
    threads = [_for_lock(1, 2), _for_lock(2, 1, 0x8000), _for_lock(5, 5, 0x9000)]

    found = deadlocks_of(threads, [_gil(None)])

    assert [[1, 2], [5]] == [[step.tid for step in circle] for circle in found]


def test_two_interpreters() -> None:
    """
    Each GIL has its own holder.
    """
    other = 0x6000
    gils = [_gil(1), _gil(2, other)]

    (circle,) = deadlocks_of([_for_gil(2), _for_gil(1, other)], gils)

    assert [1, 2] == [step.tid for step in circle]


@pytest.mark.parametrize(
    ("threads", "holder"),
    [
        ([_for_gil(2), _runs(9)], 9),
        ([_for_gil(2), _for_lock(9, None)], 9),
        ([_for_gil(2), _for_lock(9, 3), _runs(3)], 9),
        ([_for_gil(2), _for_lock(9, 2)], None),
        ([_for_gil(2), _for_lock(9, 77)], 9),
        ([], None),
    ],
    ids=["holder runs", "owner unknown", "owner runs", "free GIL", "owner has gone", "nobody"],
)
def test_what_is_no_deadlock(threads: list[DumpedThread], holder: int | None) -> None:
    """
    Somebody can go on, or nobody can tell.
    """
    assert () == deadlocks_of(threads, [_gil(holder)])
