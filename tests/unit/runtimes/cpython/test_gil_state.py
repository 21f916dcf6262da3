"""Who holds a lock, by the lock's own fields."""

import errno
from typing import cast

import pytest

from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import DirectReads
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython.gil_state import LockMemory, holder_now
from gilscope.runtimes.cpython.gil_struct import GLIBC_X86_64, GilStruct
from gilscope.runtimes.cpython.threads import ThreadFinder
from support.gil.python_in_memory import LAYOUTS, PythonInMemory

_COND_FROM_GIL = 32
_HOLDER_FROM_GIL = 8


class _Threads:
    """Knows the threads by the addresses of their states."""

    def __init__(self, **tids: int) -> None:
        self.tids = {int(tstate[1:]): tid for tstate, tid in tids.items()}

    def tid_of(self, tstate: int) -> int | None:
        return self.tids.get(tstate)


def _locks(python: PythonInMemory, threads: _Threads | None = None) -> LockMemory:
    finder = cast("ThreadFinder", threads or _Threads())
    return LockMemory(cast("ProcessMemory", python), GLIBC_X86_64, finder, DirectReads())


@pytest.mark.parametrize("version", LAYOUTS)
@pytest.mark.parametrize(("locked", "expected"), [(1, True), (0, False), (-1, False)])
def test_a_lock_says_whether_it_is_held(version: str, locked: int, *, expected: bool) -> None:
    """
    1 in every version; one that is not made yet is not held.
    """
    python = PythonInMemory(version)
    cond = python.gil(locked=locked) + _COND_FROM_GIL

    assert expected is _locks(python).is_locked(cond)


class _Gone:
    def read(self, _address: int, _size: int) -> bytes:
        raise ProcessLookupError(errno.ESRCH, "gone")


def test_a_process_that_has_gone_has_no_lock() -> None:
    """
    Neither held nor free, by nobody.
    """
    finder = cast("ThreadFinder", _Threads())
    locks = LockMemory(cast("ProcessMemory", _Gone()), GLIBC_X86_64, finder, DirectReads())

    assert (None, None) == (locks.is_locked(4096), locks.holder_tid(4096))


def test_the_holder_is_found_by_its_state() -> None:
    """
    The lock names the thread state, the interpreter the thread.
    """
    python = PythonInMemory()
    gil = python.gil()
    locks = _locks(python, _Threads(t64=7, t128=8))

    holders = []
    for tstate in (64, 128, 128, 64, 0, 192):
        python.put_int(gil + _HOLDER_FROM_GIL, tstate)
        holders.append(locks.holder_tid(gil + _COND_FROM_GIL))

    assert [7, 8, 8, 7, None, None] == holders


def test_a_holder_that_cannot_be_told_is_asked_for_again() -> None:
    """
    The list of threads may just have been changing.
    """
    python = PythonInMemory()
    gil, threads = python.gil(), _Threads()
    locks = _locks(python, threads)
    python.put_int(gil + _HOLDER_FROM_GIL, 64)

    assert locks.holder_tid(gil + _COND_FROM_GIL) is None
    threads.tids[64] = 7
    assert 7 == locks.holder_tid(gil + _COND_FROM_GIL)


def test_a_thread_state_that_is_used_again_is_another_thread() -> None:
    """
    The state of a thread that has ended is memory that the next one may get.
    """
    python = PythonInMemory()
    gil, threads = python.gil(), _Threads(t64=7)
    locks = _locks(python, threads)
    python.put_int(gil + _HOLDER_FROM_GIL, 64)

    assert 7 == locks.holder_tid(gil + _COND_FROM_GIL)
    threads.tids[64] = 9
    assert 9 == locks.holder_tid(gil + _COND_FROM_GIL)


def _scattered(python: PythonInMemory) -> tuple[int, GilStruct]:
    """Return a lock whose parts are in memory of their own, held by 64, for the ninth time."""
    cond, locked, holder, number = (python.new(64) for _ in range(4))
    python.put_int(locked, 1, 4)
    python.put_int(holder, 64)
    python.put_int(number, 9)
    parts = (holder - cond, locked - cond, number - cond)
    return cond, GilStruct(0, 0, 0, *parts, is_scattered=True)


def test_parts_that_are_variables_are_read_one_by_one() -> None:
    """
    Who holds it, how often holders have changed, and nobody if it is free.
    """
    python = PythonInMemory()
    cond, parts = _scattered(python)

    assert (64, 9) == holder_now(python, parts, cond)
    python.put_int(cond + parts.locked, 0, 4)
    assert None is holder_now(python, parts, cond)


class _Changing(PythonInMemory):
    """Its lock changes hands at each of the first reads of the number of changes."""

    changes = 0
    number = 0

    def read(self, address: int, size: int) -> bytes:
        """Count on before what is read is the number."""
        if address == self.number and self.changes:
            self.changes -= 1
            self.put_int(address, int.from_bytes(super().read(address, 8), "little") + 1)
        return super().read(address, size)


def test_a_lock_that_changes_hands_is_read_again() -> None:
    """
    Holder and number belong together; where it never rests, that is said.
    """
    python = _Changing()
    cond, parts = _scattered(python)
    python.number = cond + parts.switch_number
    python.changes = 4

    assert (64, 13) == holder_now(python, parts, cond)
    python.changes = 100
    with pytest.raises(TornRead, match="changes hands all the time"):
        holder_now(python, parts, cond)
