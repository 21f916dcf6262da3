"""What a PyPy keeps in the memory of a process."""

import os
from typing import cast

import pytest

from gilscope.model.gil import Gil
from gilscope.model.stack import UNKNOWN_FRAME, Frame
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import DirectReads
from gilscope.runtimes.pypy.facts import Facts
from gilscope.runtimes.pypy.instance import PyPyInstance
from gilscope.runtimes.pypy.layout import STACK_OFFSETS
from gilscope.runtimes.pypy.nodes import NO_INSTRUCTION, NodeKind
from support.gil.pypy_in_memory import PyPyInMemory

_RUN, _CRUNCH = 4, 8
_BIAS = 0x10_0000


def _pypy(stack_offset: int = STACK_OFFSETS[0]) -> PyPyInMemory:
    """Return one with two threads, of which the second runs Python code."""
    pypy = PyPyInMemory(os.getpid(), stack_offset=stack_offset, bias=_BIAS)
    run = pypy.code(_RUN, "run", line=3)
    crunch = pypy.code(_CRUNCH, "crunch", line=10, lines=bytes([6, 1]))
    pypy.thread(os.getpid())
    nodes = pypy.nodes((NodeKind.CODE, _CRUNCH), (NodeKind.CODE, _RUN))
    pypy.thread(os.getpid() + 1, pypy.frame(crunch, pypy.frame(run), 6), nodes)
    return pypy


def test_there_is_one_lock_from_the_beginning() -> None:
    """
    A word of the library's own data.
    """
    pypy = _pypy()

    assert [Gil(pypy.lock, 0)] == pypy.instance.gils()
    assert pypy.facts["lock"] + _BIAS == pypy.lock


def test_threads_are_counted() -> None:
    """
    Those in its own list, whether they have begun or not.
    """
    assert 2 == _pypy().instance.count_threads()


def test_how_often_it_yields_is_not_read() -> None:
    """
    It counts bytecodes itself, at no address that is known.
    """
    assert _pypy().instance.check_interval() is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize("offset", STACK_OFFSETS)
def test_probes_are_told_where_stacks_are(offset: int) -> None:
    """
    As a thread has shown it, by addresses of this process.
    """
    pypy = _pypy(offset)

    record = pypy.instance.probe_records()["pypys"]

    first = int.from_bytes(pypy.memory.read(pypy.head + 24, 8), "little")
    ident = int.from_bytes(pypy.memory.read(first + 0x38, 8), "little")
    assert (pypy.lock, pypy.head, offset, first - ident) == tuple(
        record[name] for name in ("lock", "threads", "thread_stack", "thread_of_ident")
    )
    assert pypy.facts["type.frame"] == record["frame_type"]


def test_probes_find_waits_alone_where_frames_are_not_known() -> None:
    """
    A file that tells of no frames: there are no threads to be listed either.
    """
    pypy = _pypy()
    memory = cast("ProcessMemory", pypy.memory)
    instance = PyPyInstance(
        os.getpid(), Facts({"lock": pypy.lock, "waiting": 8}), 0, memory, DirectReads()
    )

    assert {"pypys": {"lock": pypy.lock}} == instance.probe_records()
    assert 0 == instance.count_threads()
    assert [] == instance.standing.stacks(9)


def test_a_list_of_threads_that_makes_no_sense_leaves_the_first_place() -> None:
    """
    Probes are set up all the same: waits need no stacks.
    """
    pypy = _pypy()
    first = int.from_bytes(pypy.memory.read(pypy.head + 24, 8), "little")
    pypy.memory.put_int(first + 24, first)

    record = pypy.instance.probe_records()["pypys"]

    assert (0, STACK_OFFSETS[0]) == (record["thread_of_ident"], record["thread_stack"])


def test_what_probes_have_noted_is_named() -> None:
    """
    Kind and number in one word, with the instruction where there was a frame.
    """
    code = _pypy().instance.code()
    noted = [(_CRUNCH << 3 | NodeKind.CODE, 6), (_RUN << 3 | NodeKind.CODE, NO_INSTRUCTION)]

    assert (
        Frame("crunch", "/srv/app.py", 10, line=11),
        Frame("run", "/srv/app.py", 3),
    ) == code.whole_stack([*noted, (_RUN << 3 | 7, 0)])
    assert (UNKNOWN_FRAME, UNKNOWN_FRAME) == code.frames(noted)
    assert code.is_same(_CRUNCH, 0)
