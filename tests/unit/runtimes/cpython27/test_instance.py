"""What a CPython 2.7 keeps in the memory of a process."""

import os

import pytest

from gilscope.model.gil import Gil
from gilscope.model.stack import Frame
from gilscope.process.remote_read import TornRead
from support.gil.python27_in_memory import Python27InMemory


@pytest.fixture
def python() -> Python27InMemory:
    """Return one before its first thread is started."""
    return Python27InMemory(os.getpid())


def test_the_lock_comes_with_the_first_thread(python: Python27InMemory) -> None:
    """
    Before, there is none; afterwards it is the semaphore, whichever interpreter asks.
    """
    python.interpreter(1, python.interpreter(0))
    assert [] == python.instance.gils()

    lock = python.semaphore(value=1)

    assert [Gil(lock, 0)] == python.instance.gils()


def test_threads_of_all_interpreters_are_counted(python: Python27InMemory) -> None:
    """
    Each thread state is one.
    """
    assert 0 == python.instance.count_threads()
    first = python.interpreter(0)
    python.thread(first, python.thread(first))
    python.thread(python.interpreter(1, first))

    assert 3 == python.instance.count_threads()


def test_threads_that_follow_each_other_are_torn(python: Python27InMemory) -> None:
    """
    A list that leads back into itself was read while it changed.
    """
    interpreter = python.interpreter(0)
    thread = python.thread(interpreter)
    python.put_int(thread + python.layout.tstate_next, thread)

    with pytest.raises(TornRead, match="does not end"):
        python.instance.count_threads()


def test_the_check_interval_is_read(python: Python27InMemory) -> None:
    """
    It is what sys.getcheckinterval() tells, and a program may set it as it runs.
    """
    assert 100 == python.instance.check_interval()
    python.put_int(python.check_interval, 10_000, 4)
    assert 10_000 == python.instance.check_interval()


@pytest.mark.parametrize(
    ("instruction", "line"), [(0, 10), (5, 10), (6, 11), (17, 11), (18, 311), (90, 311)]
)
def test_lines_of_code(python: Python27InMemory, instruction: int, line: int) -> None:
    """
    Names are bytes, and lines only ever grow: 300 of them are two steps.
    """
    code = python.code(
        "crunch", "/srv/löwe.py", 10, line_table=bytes([6, 1, 12, 255, 0, 45]), instructions=60
    )

    (frame,) = python.instance.code().frames([(code, instruction)])

    assert Frame("crunch", "/srv/löwe.py", 10, line=line) == frame


def test_probes_are_told_of_the_lock_and_its_holder(python: Python27InMemory) -> None:
    """
    Both are pointers, for a fork makes another lock.
    """
    words = {"lock_pointer": python.lock_pointer, "holder_pointer": python.current}

    assert {"semaphores": words} == python.instance.probe_records()


def test_probes_are_told_where_threads_and_frames_are(python: Python27InMemory) -> None:
    """
    By offsets that 2.7's own headers give; thread states know of no previous one.
    """
    walk = python.instance.frame_walk()

    assert python.runtime.address == walk["interpreters"]
    assert {
        "tstate_next": 0,
        "tstate_frame": 16,
        "has_tstate_previous": 0,
        "thread_id": 144,
        "frame_begin": 0,
        "frame_previous": 24,
        "frame_code": 32,
        "frame_instruction": 120,
        "frame_size": 124,
    }.items() <= dict(walk).items()
