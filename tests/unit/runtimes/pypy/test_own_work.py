"""What a PyPy in memory does for itself: it collects garbage, or compiles."""

import os

import pytest

from gilscope.process.remote_read import TornRead
from gilscope.runtimes.pypy.facts import Facts
from gilscope.runtimes.pypy.layout import Place
from gilscope.runtimes.pypy.own_work import OwnWork, read_own_work
from gilscope.runtimes.pypy.threads import PyPyThreads
from support.gil.pypy_in_memory import PyPyInMemory

_TRACING, _BACKEND = 0, 1


class _Process:
    """One with a thread in two frames."""

    def __init__(self) -> None:
        self.pypy = pypy = PyPyInMemory(os.getpid())
        self.outer = pypy.frame(pypy.code(4, "run"))
        pypy.thread(os.getpid(), pypy.virtual(pypy.frame(pypy.code(8, "crunch"), self.outer)))

    def work(self) -> OwnWork:
        pypy = self.pypy
        threads = PyPyThreads(os.getpid(), pypy.memory, pypy.place).all()
        return read_own_work(pypy.memory, pypy.place, threads)


@pytest.mark.parametrize(
    ("sections", "about", "expected"),
    [
        (0, (), OwnWork.NONE),
        (1, (), OwnWork.COLLECTION),
        (2, (), OwnWork.COLLECTION),
        (1, (_TRACING,), OwnWork.COMPILATION),
        (2, (_TRACING,), OwnWork.COMPILATION),
        (3, (_TRACING, _BACKEND), OwnWork.COMPILATION),
        (0, (_TRACING,), OwnWork.COMPILATION),
    ],
)
def test_what_it_is_about(sections: int, about: tuple[int, ...], expected: OwnWork) -> None:
    """
    A section without the JIT is one of the collector; with PYPYLOG there is none.
    """
    process = _Process()
    process.pypy.works(sections, *about)

    assert expected is process.work()


@pytest.mark.parametrize(
    ("sections", "about", "expected"),
    [
        (1, (_TRACING,), OwnWork.NONE),
        (2, (_TRACING,), OwnWork.COLLECTION),
        (2, (_TRACING, _TRACING), OwnWork.COMPILATION),
        (2, (_TRACING, _BACKEND), OwnWork.COMPILATION),
    ],
)
def test_a_traced_loop_in_a_call_is_not_followed(
    sections: int, about: tuple[int, ...], expected: OwnWork
) -> None:
    """
    Nothing is compiled until it has come back, unless another loop is traced meanwhile.
    """
    process = _Process()
    process.pypy.traced(process.outer)
    process.pypy.works(sections, *about)

    assert expected is process.work()


def test_nothing_is_told_without_facts() -> None:
    """
    Where the file does not say where it is noted.
    """
    pypy = PyPyInMemory(os.getpid())
    pypy.works(1)
    numbers = {name: at for name, at in pypy.facts.numbers.items() if name != "sections"}

    assert OwnWork.NONE is read_own_work(pypy.memory, Place(Facts(numbers), 0), ())


@pytest.mark.parametrize("about", [(7,), (_TRACING,) * 65], ids=("unknown", "many"))
def test_notes_that_make_no_sense_are_torn(about: tuple[int, ...]) -> None:
    """
    They are being written.
    """
    process = _Process()
    process.pypy.works(0, *about)

    with pytest.raises(TornRead):
        process.work()
