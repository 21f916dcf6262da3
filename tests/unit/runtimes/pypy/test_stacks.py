"""Whole stacks of the threads of a PyPy."""

import os

import pytest

from gilscope.model.stack import UNKNOWN_STACK, Frame, Stack, StackState
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.pypy.layout import STACK_OFFSETS
from gilscope.runtimes.pypy.nodes import NodeKind
from gilscope.runtimes.pypy.stacks import UNREAD_FRAME, StackReader, find_stack_offset
from gilscope.runtimes.pypy.threads import PyPyThreads
from support.gil.pypy_in_memory import PyPyInMemory

_RUN, _CRUNCH, _INNER, _LOOP = 4, 8, 12, 16
_JIT = 0x7F00_1000_0000


class _Process:
    """A thread that runs `crunch`, called by `run`: its frames and its nodes say the same."""

    def __init__(self, stack_offset: int = STACK_OFFSETS[0]) -> None:
        self.pypy = pypy = PyPyInMemory(os.getpid(), stack_offset=stack_offset)
        self.run = pypy.code(_RUN, "run", line=3)
        self.crunch = pypy.code(_CRUNCH, "crunch", line=10, lines=bytes([6, 1]))
        pypy.code(_INNER, "inner", line=20)
        pypy.code(_LOOP, "loop", line=30)
        self.outer = pypy.frame(self.run)
        self.frame = pypy.frame(self.crunch, self.outer, instruction=6)
        self.thread(self.frame, (NodeKind.CODE, _CRUNCH), (NodeKind.CODE, _RUN))

    def thread(self, frame: int, *nodes: tuple[NodeKind, int]) -> None:
        self.pypy.thread(os.getpid(), frame, self.pypy.nodes(*nodes))

    @property
    def threads(self) -> PyPyThreads:
        return PyPyThreads(os.getpid(), self.pypy.memory, self.pypy.place)

    def last(self, most: int = 100) -> tuple[Stack, int]:
        """Return what is read of the newest thread."""
        reader = StackReader(self.pypy.memory, self.pypy.place, self.threads, most)
        return reader.stack(self.threads.all()[-1])

    def names(self) -> list[str]:
        stack, _ = self.last()
        return [frame.function for frame in stack.frames]


def test_interpreted_code_has_its_lines() -> None:
    """
    Innermost first, by the frames' own instructions.
    """
    stack, position = _Process().last()

    assert stack == Stack(
        (
            Frame("crunch", "/srv/app.py", 10, line=11),
            Frame("run", "/srv/app.py", 3, line=3),
        ),
        StackState.WHOLE,
    )
    assert position


@pytest.mark.parametrize("offset", STACK_OFFSETS)
def test_where_stacks_are_is_found_by_their_frames(offset: int) -> None:
    """
    In one of two places, by what the chain of frames says of the same thread.
    """
    process = _Process(offset)
    threads = process.threads.all()

    assert offset == find_stack_offset(process.pypy.memory, process.pypy.place, threads)


def test_a_stack_that_frames_do_not_confirm_is_not_read() -> None:
    """
    Since PyPy 8 another list looks like one: nothing is taken for a stack before a thread agrees.
    """
    process = _Process()
    process.pypy.memory.put_int(process.run + process.pypy.facts["code.number"], _INNER)
    threads = process.threads.all()

    assert find_stack_offset(process.pypy.memory, process.pypy.place, threads) is None
    assert (UNKNOWN_STACK, 0) == process.last()


def test_a_thread_of_the_other_kind_of_frames() -> None:
    """
    PyPy has two kinds; a reference of the JIT's leads to one that it has put into memory.
    """
    process = _Process()
    outer = process.pypy.frame(process.run, other=True)
    frame = process.pypy.virtual(process.pypy.frame(process.crunch, outer, 6))
    process.thread(frame, (NodeKind.CODE, _CRUNCH), (NodeKind.CODE, _RUN))

    stack, _ = process.last()

    assert [11, 3] == [each.line for each in stack.frames]


def test_a_frame_in_registers_has_no_line() -> None:
    """
    The JIT has not put it into memory: the function is told, and its first line alone.
    """
    process = _Process()
    process.thread(process.pypy.virtual(), (NodeKind.CODE, _CRUNCH), (NodeKind.CODE, _RUN))

    stack, _ = process.last()

    assert [("crunch", None), ("run", None)] == [(one.function, one.line) for one in stack.frames]


def test_inlined_functions_are_told() -> None:
    """
    One node of the JIT's stands for several; the function whose loop was entered is named once.
    """
    process = _Process()
    process.pypy.jit_piece(_JIT, 100, (_LOOP, 0, 100, 8, _INNER, 20, 40, 8))
    process.thread(0, (NodeKind.JITTED, _JIT + 30), (NodeKind.CODE, _LOOP), (NodeKind.CODE, _RUN))
    assert ["inner", "loop", "run"] == process.names()

    process.thread(0, (NodeKind.JITTED, _JIT + 50), (NodeKind.CODE, _LOOP), (NodeKind.CODE, _RUN))
    assert ["loop", "run"] == process.names()


def test_compiled_code_of_no_function_is_no_frame() -> None:
    """
    The JIT compiles loops of PyPy's own as well, such as that of regular expressions.
    """
    process = _Process()
    process.pypy.jit_piece(_JIT, 100, (0, 0, 100, 4))
    process.thread(process.frame, (NodeKind.JITTED, _JIT + 30), (NodeKind.CODE, _CRUNCH))

    assert ["crunch"] == process.names()


def test_what_the_jit_has_called_last_may_be_elsewhere() -> None:
    """
    Then its node tells nothing, and the one below tells whose loop it is.
    """
    process = _Process()
    process.pypy.jit_piece(_JIT, 100, (_LOOP, 0, 100, 4))
    process.thread(0, (NodeKind.JITTED, _JIT + 100), (NodeKind.CODE, _LOOP))

    assert ["loop"] == process.names()


def test_a_node_of_the_collector_is_no_function() -> None:
    """
    It is left out.
    """
    process = _Process()
    process.thread(0, (NodeKind.GC, 0), (NodeKind.CODE, _RUN))

    assert ["run"] == process.names()


def test_code_that_has_gone_is_a_frame_without_a_name() -> None:
    """
    In words, not by a guess.
    """
    process = _Process()
    process.thread(0, (NodeKind.CODE, 400), (NodeKind.CODE, _RUN))

    assert [UNREAD_FRAME.function, "run"] == process.names()


def test_a_deep_stack_is_cut() -> None:
    """
    What is not read is not made up.
    """
    stack, _ = _Process().last(most=1)

    assert (["crunch"], StackState.CUT) == (
        [frame.function for frame in stack.frames],
        stack.state,
    )


def test_a_thread_without_nodes_runs_no_python() -> None:
    """
    It waits for its first GIL.
    """
    process = _Process()
    process.thread(0)

    assert (Stack((), StackState.NO_PYTHON), 0) == process.last()


def test_nodes_that_make_no_sense_are_torn() -> None:
    """
    The thread has moved on: whoever reads tries again.
    """
    process = _Process()
    process.pypy.thread(os.getpid(), 0, process.pypy.text("no node"))

    with pytest.raises(TornRead, match="no node"):
        process.last()


def test_the_same_nodes_have_the_same_position() -> None:
    """
    Another instruction of the same function is another one.
    """
    process = _Process()
    _, first = process.last()
    _, again = process.last()
    process.pypy.memory.put_int(process.frame + process.pypy.facts["frame.instruction"], 8)
    _, moved = process.last()

    assert first == again != moved
