"""Keeps the roles of threads that can be asked, and of those that cannot any more."""

import os

import pytest

from gilscope.model.stack import UNKNOWN_FRAME, Frame
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


def test_main_thread(reader: RoleReader) -> None:
    """
    The thread with the process' own id is the main one, whatever it runs.
    """
    reader.want(_PID)
    reader.learn(_PID, [_WORKER])

    assert {_PID: "MainThread"} == reader.known
