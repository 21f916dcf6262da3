"""Keeps the roles of threads that can be asked, and of those that cannot any more."""

import os

import pytest

from gilscope.model.stack import UNKNOWN_FRAME, Frame
from gilscope.runtimes.cpython import thread_roles
from gilscope.runtimes.cpython.thread_roles import RoleReader
from gilscope.runtimes.cpython.threads import ThreadFinder
from support.gil.python_in_memory import PythonInMemory

_BOOTSTRAP = (
    Frame("Thread._bootstrap", "/usr/lib/python3.11/threading.py", 995),
    Frame("Thread._bootstrap_inner", "/usr/lib/python3.11/threading.py", 1038),
    Frame("Thread.run", "/usr/lib/python3.11/threading.py", 971),
)
_WORKER = Frame("worker", "/srv/app/jobs.py", 41)
_OTHER = Frame("other", "/srv/app/jobs.py", 50)
_PID = os.getpid()
_TID = 1 << 30
"""Of a thread that is not there; no kernel gives such an id."""


@pytest.fixture
def reader() -> RoleReader:
    """A reader of this process whose Python has no threads any more."""
    python = PythonInMemory()
    python.interpreter(0)
    return RoleReader(_PID, python.runtime, ThreadFinder(_PID, python.runtime))


def test_thread_that_nobody_knows(reader: RoleReader) -> None:
    """
    A thread that ended before it could be asked is said to be unknown.
    """
    assert "unknown" == reader.final(_TID)


def test_thread_that_has_waited_and_ended(reader: RoleReader) -> None:
    """
    The stack in which it waited names a thread that cannot be asked any more.
    """
    reader.learn(_TID, [*_BOOTSTRAP, _WORKER])

    assert "worker (jobs.py:41)" == reader.final(_TID)
    assert {} == reader.known


def test_thread_that_has_ended_is_known_by_what_is_read_of_it_later(
    reader: RoleReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Its stacks are read with the tables, which may be seconds after its end.
    """
    monkeypatch.setattr(thread_roles, "_PATIENCE_S", 0.0)
    reader.want(_TID)
    reader.read_wanted()
    reader.learn(_TID, [*_BOOTSTRAP, _WORKER])

    assert "worker (jobs.py:41)" == reader.final(_TID)
    assert not reader.is_wanted


def test_thread_without_frames_is_known_by_those_that_it_had(reader: RoleReader) -> None:
    """
    A thread that C code started is known from its wait, when there is nothing to be read of it.
    """
    reader.want(_TID)
    reader.read_wanted()
    before = dict(reader.known)
    reader.learn(_TID, [_WORKER])
    reader.read_wanted()

    assert ({}, {_TID: "worker (jobs.py:41)"}) == (before, reader.known)


def test_role_never_changes(reader: RoleReader) -> None:
    """
    The first stack that tells a role decides, unless the thread's id goes to another one.
    """
    reader.learn(_TID, [_WORKER])
    reader.learn(_TID, [_OTHER])
    reader.want(_TID)
    reader.read_wanted()
    reader.learn(_TID, [_OTHER])
    first = reader.final(_TID)
    reader.forget(_TID)
    forgotten = reader.final(_TID)
    reader.learn(_TID, [_OTHER])

    assert ["worker (jobs.py:41)", "unknown", "other (jobs.py:50)"] == [
        first,
        forgotten,
        reader.final(_TID),
    ]


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [*_BOOTSTRAP],
        [UNKNOWN_FRAME, _WORKER],
        [*_BOOTSTRAP, UNKNOWN_FRAME],
        [Frame("<module>", "<string>", 1), _WORKER],
    ],
    ids=["none", "in threading", "unknown", "unknown later", "another interpreter's"],
)
def test_stack_that_tells_no_role(reader: RoleReader, frames: list[Frame]) -> None:
    """
    Nothing is learned from a stack whose beginning does not show the thread's.
    """
    reader.learn(_TID, frames)

    assert "unknown" == reader.final(_TID)


_POOL = Frame("_worker", "/usr/lib/python3.11/concurrent/futures/thread.py", 70)


def test_thread_of_a_pool_with_one_job(reader: RoleReader) -> None:
    """
    It is known by its job, once no other can come.
    """
    reader.want(_TID)
    for job in ((), (_WORKER,), (_WORKER,)):
        reader.learn(_TID, [*_BOOTSTRAP, _POOL, *job])
        reader.read_wanted()
    before = dict(reader.known)
    reader.settle()

    assert ({}, {_TID: "worker (jobs.py:41)"}) == (before, reader.known)


def test_thread_of_a_pool_with_several_jobs(reader: RoleReader) -> None:
    """
    One of them would be a wrong name for the others: it is known by the pool's function at once.
    """
    reader.want(_TID)
    for job in (_WORKER, _OTHER):
        reader.learn(_TID, [*_BOOTSTRAP, _POOL, job])
    reader.read_wanted()

    assert {_TID: "_worker (concurrent/futures/thread.py:70)"} == reader.known


def test_thread_of_a_pool_that_has_ended(reader: RoleReader) -> None:
    """
    Its job is in its waits, as far as they were seen; without one it is the pool's.
    """
    reader.learn(_TID, [*_BOOTSTRAP, _POOL])
    idle = reader.final(_TID)
    reader.learn(_TID, [*_BOOTSTRAP, _POOL, _WORKER])

    assert ["_worker (concurrent/futures/thread.py:70)", "worker (jobs.py:41)"] == [
        idle,
        reader.final(_TID),
    ]


def test_main_thread(reader: RoleReader) -> None:
    """
    The thread with the process' own id is the main one, whatever it runs.
    """
    reader.want(_PID)
    reader.learn(_PID, [_WORKER])

    assert {_PID: "MainThread"} == reader.known
