"""Reads the lock of a CPython 2.7 out of made-up memory."""

import os
import struct
from collections.abc import Iterator

import pytest

from gilscope.model.gil import Gil
from gilscope.model.moment.seen import LockNow
from gilscope.model.stack import Stack, StackState
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.base import HolderSample
from gilscope.runtimes.cpython27.lock import LOCK_WORD, is_held, semaphore
from support.gil.python27_in_memory import Python27InMemory
from support.parked_thread import parked_thread

_POINTER, _SEMAPHORE = 0x1000, 0x2000
_PAGE = 4096
"""Memory is read by pages."""


class _Memory:
    """A pointer to a semaphore with this value and so many waiters."""

    def __init__(self, pointer: int, value: int = 0, waiters: int = 0) -> None:
        self._words = {_POINTER: pointer, _SEMAPHORE: waiters << 32 | value}

    def read(self, address: int, size: int) -> bytes:
        return struct.pack("<Q", self._words[address])[:size]


def test_there_is_no_lock_before_the_first_thread() -> None:
    """
    The pointer is NULL until then.
    """
    assert semaphore(_Memory(0), _POINTER) is None
    assert _SEMAPHORE == semaphore(_Memory(_SEMAPHORE), _POINTER)


def test_a_pointer_that_cannot_be_one_is_torn() -> None:
    """
    No structure lies at such an address.
    """
    with pytest.raises(TornRead):
        semaphore(_Memory(_SEMAPHORE + 1), _POINTER)


@pytest.mark.parametrize(("value", "held"), [(0, True), (1, False)])
def test_the_low_half_says_whether_it_is_held(value: int, held: bool) -> None:  # noqa: FBT001
    """
    However many threads wait for it.
    """
    for waiters in (0, 1, 7):
        memory = _Memory(_SEMAPHORE, value, waiters)
        found = int.from_bytes(memory.read(_SEMAPHORE + LOCK_WORD.offset, LOCK_WORD.size), "little")

        assert held is is_held(memory, _SEMAPHORE)
        assert held is ((found == LOCK_WORD.value) is LOCK_WORD.is_held_if_equal)


class _Process:
    """This process, as a CPython 2.7 would describe it: the main thread runs, another one waits."""

    def __init__(self, other_tid: int) -> None:
        self.python = python = Python27InMemory(os.getpid())
        run, crunch = python.code("run", line=3), python.code("crunch", line=10)
        interpreter = python.interpreter(0)
        self.waiting = python.thread(
            interpreter, frame=python.stack(run), thread_id=python.kernel_thread(other_tid)
        )
        self.running = python.thread(
            interpreter,
            self.waiting,
            frame=python.stack(run, crunch),
            thread_id=python.kernel_thread(os.getpid()),
        )
        python.set_ticks(self.running, 7)
        self.lock = python.semaphore(waiters=1)
        python.put_int(python.current, self.running)
        python.new(2 * _PAGE)
        self.other_tid = other_tid
        self.instance = python.instance


@pytest.fixture
def process() -> Iterator[_Process]:
    """Return it; its other thread lives until the test is over."""
    with parked_thread() as tid:
        yield _Process(tid)


def test_who_holds_it_is_the_current_thread(process: _Process) -> None:
    """
    The interpreter says so itself, behind taking the lock.
    """
    assert process.instance.locks.is_locked(process.lock) is True
    assert os.getpid() == process.instance.locks.holder_tid(process.lock)

    process.python.put_int(process.python.current, process.waiting)

    assert process.other_tid == process.instance.locks.holder_tid(process.lock)


def test_what_the_holder_does(process: _Process) -> None:
    """
    Its whole stack, innermost first; its ticks stand for how often it has given the lock away.
    """
    sample = process.instance.holders.sample(process.lock)

    assert sample is not None
    assert ["crunch", "run"] == [frame.function for frame in sample.stack.frames]
    assert (StackState.WHOLE, os.getpid(), process.running, 7, False, None) == (
        sample.stack.state,
        sample.tid,
        sample.thread,
        sample.switch_number,
        sample.is_collecting,
        sample.generation,
    )


def test_a_tick_ends_a_hold(process: _Process) -> None:
    """
    The same thread has the lock again behind it, but others could have taken it.
    """
    sample = process.instance.holders.sample(process.lock)
    assert sample is not None
    assert process.instance.holders.is_held_by(process.lock, sample)

    process.python.set_ticks(process.running, 8)

    assert not process.instance.holders.is_held_by(process.lock, sample)
    assert 1 == process.python.handed.over  # for the number of the thread


def test_nobody_holds_a_free_lock(process: _Process) -> None:
    """
    The last holder is not called the current one.
    """
    sample = process.instance.holders.sample(process.lock)
    assert sample is not None
    process.python.put_int(process.lock, 1)

    assert process.instance.locks.is_locked(process.lock) is False
    assert process.instance.holders.sample(process.lock) is None
    assert not process.instance.holders.is_held_by(process.lock, sample)


def test_a_lock_that_is_just_taken_has_no_holder_yet(process: _Process) -> None:
    """
    Whoever takes it says so a moment later; until then its stack is torn, and nobody is blamed.
    """
    process.python.put_int(process.python.current, 0)

    assert process.instance.locks.holder_tid(process.lock) is None
    assert HolderSample(
        Stack((), StackState.TORN), None, 0, 0, 0, is_collecting=False
    ) == process.instance.holders.sample(process.lock)


def test_where_all_threads_stand(process: _Process) -> None:
    """
    And the lock with the bytes in which others wait for it.
    """
    standing = process.instance.standing

    assert [(os.getpid(), ["crunch", "run"]), (process.other_tid, ["run"])] == [
        (each.tid, [frame.function for frame in each.stack.frames]) for each in standing.stacks(9)
    ]
    assert [
        LockNow(
            Gil(process.lock, 0),
            is_held=True,
            holder_tid=os.getpid(),
            first=process.lock,
            last=process.lock + 32,
        )
    ] == standing.locks()


def test_before_the_first_thread_no_lock_stands(process: _Process) -> None:
    """
    The pointer to it is NULL.
    """
    process.python.put_int(process.python.lock_pointer, 0)

    assert [] == process.instance.standing.locks()


@pytest.mark.parametrize("damage", ["odd", "nowhere"])
def test_a_lock_where_there_is_none_is_not_known(process: _Process, damage: str) -> None:
    """
    Nothing is said of it: neither that it is held nor that it is free.
    """
    lock = process.lock + 1 if damage == "odd" else 0x1000
    process.python.put_int(process.python.lock_pointer, lock)

    assert process.instance.locks.is_locked(0x1000) is None
    with pytest.raises(TornRead):
        process.instance.standing.locks()


def test_frames_that_call_each_other_are_torn(process: _Process) -> None:
    """
    Read while the thread ran on, a chain may lead back into itself.
    """
    frame = int.from_bytes(process.python.read(process.running + 16, 8), "little")
    process.python.put_int(frame + process.python.layout.frame_previous, frame)

    (running, waiting) = process.instance.standing.stacks(9)

    assert Stack((), StackState.TORN) == running.stack
    assert StackState.WHOLE is waiting.stack.state
