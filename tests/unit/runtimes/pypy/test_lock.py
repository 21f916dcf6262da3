"""The lock of a PyPy in memory: who holds it, what that thread does, and where all stand."""

import os

import pytest

from gilscope.model.gil import Gil
from gilscope.model.moment.seen import LockNow, ThreadStack
from gilscope.model.stack import UNKNOWN_STACK, Stack, StackState
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.base import HolderSample
from gilscope.runtimes.pypy.lock import LOCK_WORD, holder_of
from gilscope.runtimes.pypy.nodes import NodeKind
from support.gil.pypy_in_memory import PyPyInMemory

_RUN, _CRUNCH = 4, 8
_NO_THREAD = 0x4000_0000


class _Process:
    """This process, as a PyPy would describe it whose main thread holds the lock."""

    def __init__(self, *, is_collecting: bool = False) -> None:
        self.pypy = pypy = PyPyInMemory(os.getpid())
        run, crunch = pypy.code(_RUN, "run"), pypy.code(_CRUNCH, "crunch")
        frame = pypy.frame(crunch, pypy.frame(run))
        code = ((NodeKind.CODE, _CRUNCH), (NodeKind.CODE, _RUN))
        self.ended = pypy.thread(_NO_THREAD, frame, pypy.nodes(*code))
        self.holder = pypy.thread(os.getpid(), frame, pypy.nodes(*code))
        pypy.works(int(is_collecting))
        self.lock = pypy.lock
        self.instance = pypy.instance
        self.held_by(self.holder)

    def held_by(self, ident: int) -> None:
        """Write who holds the lock, 0 for nobody."""
        self.pypy.memory.put_int(self.lock, ident)


@pytest.mark.parametrize("is_held", [True, False])
def test_the_word_says_whether_it_is_held(*, is_held: bool) -> None:
    """
    It is who holds it, and 0 while nobody does.
    """
    process = _Process()
    process.held_by(process.holder if is_held else 0)
    word = process.pypy.memory.read(process.lock + LOCK_WORD.offset, LOCK_WORD.size)

    assert (process.holder if is_held else 0) == holder_of(process.pypy.memory, process.lock)
    assert is_held is process.instance.locks.is_locked(process.lock)
    assert (os.getpid() if is_held else None) == process.instance.locks.holder_tid(process.lock)
    assert is_held is (
        (int.from_bytes(word, "little") == LOCK_WORD.value) is LOCK_WORD.is_held_if_equal
    )


def test_a_lock_that_is_not_readable_is_neither() -> None:
    """
    Nothing is said of it.
    """
    locks = _Process().instance.locks

    assert (None, None) == (locks.is_locked(0x1000), locks.holder_tid(0x1000))
    with pytest.raises(TornRead):
        holder_of(_Process().pypy.memory, 0x1000)


@pytest.mark.parametrize("is_collecting", [False, True])
def test_what_the_holder_does(*, is_collecting: bool) -> None:
    """
    Its stack, and whether it collects garbage; C code under it looks like Python code.
    """
    process = _Process(is_collecting=is_collecting)
    sample = process.instance.holders.sample(process.lock)

    assert sample is not None
    assert ["crunch", "run"] == [frame.function for frame in sample.stack.frames]
    assert (StackState.WHOLE, os.getpid(), process.holder, is_collecting, False) == (
        sample.stack.state,
        sample.tid,
        sample.thread,
        sample.is_collecting,
        sample.tells_native,
    )
    assert process.instance.holders.is_held_by(process.lock, sample)
    for other in (0, process.ended):
        process.held_by(other)
        assert not process.instance.holders.is_held_by(process.lock, sample)
    assert 1 == process.pypy.handed.over  # for the number of the thread


def test_nobody_holds_a_free_lock() -> None:
    """
    There is no sample then.
    """
    process = _Process()
    process.held_by(0)

    assert process.instance.holders.sample(process.lock) is None


@pytest.mark.parametrize("holder", ["ended", "stranger"])
def test_a_holder_that_is_no_thread_any_more(holder: str) -> None:
    """
    While a lock is handed over the word may name a thread that has ended; nobody is blamed.
    """
    process = _Process()
    ident = process.ended if holder == "ended" else 0x7000_0000
    process.held_by(ident)

    assert HolderSample(
        UNKNOWN_STACK, None, ident, 0, 0, is_collecting=False
    ) == process.instance.holders.sample(process.lock)
    assert process.instance.locks.holder_tid(process.lock) is None


def test_a_holder_whose_stack_makes_no_sense_is_torn() -> None:
    """
    Read again a few times, and then said.
    """
    process = _Process()
    broken = process.pypy.thread(os.getpid(), 0, process.pypy.text("no node"))
    process.held_by(broken)
    # The one before it is of a thread that has ended.
    process.pypy.memory.put_int(process.holder + 720, _NO_THREAD, 4)

    assert HolderSample(
        Stack((), StackState.TORN), None, 0, 0, 0, is_collecting=False
    ) == process.instance.holders.sample(process.lock)
    (torn,) = process.instance.standing.stacks(9)
    assert ThreadStack(os.getpid(), 0, Stack((), StackState.TORN)) == torn


def test_where_all_threads_stand() -> None:
    """
    Those that the kernel knows, as many as are wanted.
    """
    standing = _Process().instance.standing

    assert [(os.getpid(), ["crunch", "run"])] == [
        (each.tid, [frame.function for frame in each.stack.frames]) for each in standing.stacks(9)
    ]
    assert [] == standing.stacks(0)
    assert os.getpid() in standing.tids_by_own_id().values()


def test_the_lock_stands_with_what_others_wait_by() -> None:
    """
    The mutexes lie behind the word.
    """
    process = _Process()
    lock = process.lock

    assert [
        LockNow(Gil(lock, 0), is_held=True, holder_tid=os.getpid(), first=lock, last=lock + 256)
    ] == process.instance.standing.locks()
    process.held_by(0)
    assert [
        LockNow(Gil(lock, 0), is_held=False, holder_tid=None, first=lock, last=lock + 256)
    ] == process.instance.standing.locks()


def test_a_list_of_threads_that_makes_no_sense_is_torn() -> None:
    """
    Where all stand cannot be told then; who holds the lock is not known.
    """
    process = _Process()
    first = int.from_bytes(process.pypy.memory.read(process.pypy.head + 24, 8), "little")
    process.pypy.memory.put_int(first + 24, first)

    with pytest.raises(TornRead, match="does not end"):
        process.instance.standing.stacks(9)
    assert process.instance.locks.holder_tid(process.lock) is None
