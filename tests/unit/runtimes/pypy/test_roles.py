"""The roles of the threads of a PyPy."""

import os
from collections.abc import Iterator

import pytest

from gilscope.runtimes.pypy.nodes import NodeKind
from support.gil.pypy_in_memory import PyPyInMemory
from support.parked_thread import parked_thread

_BOOTSTRAP, _RUN, _CRUNCH = 4, 8, 12


@pytest.fixture
def tid() -> Iterator[int]:
    """Return another thread of this process, which lives until the test is over."""
    with parked_thread() as tid:
        yield tid


def _pypy(tid: int, *numbers: int) -> PyPyInMemory:
    """Return a PyPy with one thread, which runs this code, innermost first."""
    pypy = PyPyInMemory(os.getpid())
    threading = "/usr/lib/pypy3.9/threading.py"
    code = {
        _BOOTSTRAP: pypy.code(_BOOTSTRAP, "_bootstrap", threading),
        _RUN: pypy.code(_RUN, "run", threading),
        _CRUNCH: pypy.code(_CRUNCH, "crunch"),
    }
    frame = 0
    for number in reversed(numbers):
        frame = pypy.frame(code[number], frame)
    pypy.thread(tid, frame, pypy.nodes(*((NodeKind.CODE, number) for number in numbers)))
    return pypy


def test_a_thread_is_named_by_what_it_was_started_for(tid: int) -> None:
    """
    The outermost function that is not threading's own.
    """
    roles = _pypy(tid, _CRUNCH, _RUN, _BOOTSTRAP).instance.threads
    roles.want(tid)
    roles.read_wanted()

    assert {tid: "crunch (app.py:1)"} == roles.known
    assert not roles.is_wanted


@pytest.mark.parametrize("numbers", [(), (_RUN, _BOOTSTRAP)])
def test_a_thread_that_starts_has_no_role_yet(tid: int, numbers: tuple[int, ...]) -> None:
    """
    It is asked again.
    """
    roles = _pypy(tid, *numbers).instance.threads
    roles.want(tid)
    roles.read_wanted()

    assert {} == roles.known
    assert roles.is_wanted


def test_a_stack_that_makes_no_sense_is_asked_again(tid: int) -> None:
    """
    It is no error of whoever reads roles.
    """
    pypy = _pypy(tid, _CRUNCH)
    pypy.thread(tid, 0, pypy.text("no node"))
    roles = pypy.instance.threads
    roles.want(tid)
    roles.read_wanted()

    assert {} == roles.known
    assert roles.is_wanted
