"""What the thread does that holds a GIL, in memory that is laid out as each version does it."""

import pytest

from gilscope.model.stack import Stack
from gilscope.runtimes.base import HolderSample
from gilscope.runtimes.cpython.stack_walk import StackWalk
from support.gil.python_in_memory import LAYOUTS, PythonInMemory

_PAGE = 4096
"""Memory is read by pages."""
_NOWHERE = 0x1000
"""Where the lock of an interpreter was that has ended."""
every_version = pytest.mark.parametrize("version", LAYOUTS)


def _sample(version: str, *, collecting: int = 0, counts: tuple[int, int] = (0, 0)) -> HolderSample:
    """Return what is read of a process in which a thread of `crunch` holds the GIL."""
    python = PythonInMemory(version)
    gil, flag = _crunching(python)
    python.put_int(flag, collecting, 4)
    for offset, count in zip(python.layout.gc_counts, counts, strict=False):
        python.put_int(flag + offset, count, 4)
    sample = python.instance.holders.sample(gil + 32)
    assert sample is not None
    assert python.instance.holders.is_held_by(gil + 32, sample)
    python.put_int(gil + 24, 10)
    assert not python.instance.holders.is_held_by(gil + 32, sample)
    assert not python.instance.holders.is_held_by(_NOWHERE, sample)
    python.put_int(gil + 16, 0, 4)
    assert python.instance.holders.sample(gil + 32) is None
    assert 1 == python.handed.over  # for the number of the thread
    return sample


def _crunching(python: PythonInMemory) -> tuple[int, int]:
    """Have a thread of `crunch` hold the GIL; return where that and a collection's flag lie."""
    layout = python.layout
    gil = python.gil()
    interpreter = python.interpreter(0, gil=gil)
    main, crunch = python.code("main"), python.code("crunch")
    outer = python.first_frame(main)
    frame = python.frame(crunch, outer)
    if layout.instruction_is_pointer:
        for each, code in ((outer, main), (frame, crunch)):
            python.put_int(each + layout.frame_instruction, code + layout.code_bytecode)
    tstate = python.thread(interpreter, frame=frame, thread_id=0x7000)
    python.put_int(gil + 8, tstate)
    python.put_int(gil + 24, 9)
    python.new(_PAGE)
    owner = python.runtime.address if layout.gc_in_runtime else interpreter
    assert layout.gc_collecting is not None
    return gil, owner + layout.gc_collecting


@every_version
def test_where_the_holder_stands(version: str) -> None:
    """
    Its functions, innermost first, and how often the lock has changed hands.
    """
    sample = _sample(version)

    assert ["crunch", "main"] == [frame.function for frame in sample.stack.frames]
    assert (9, None, False, None) == (
        sample.switch_number,
        sample.tid,
        sample.is_collecting,
        sample.generation,
    )


@every_version
@pytest.mark.parametrize(
    ("counts", "generation"), [((3, 1), 0), ((0, 2), 1), ((0, 0), 2)], ids=["0", "1", "2"]
)
def test_what_it_collects(version: str, counts: tuple[int, int], generation: int) -> None:
    """
    The generation is the oldest whose count has been set back; 3.14 keeps others.
    """
    sample = _sample(version, collecting=1, counts=counts)
    is_known = bool(LAYOUTS[version].gc_counts)

    assert sample.is_collecting
    assert (generation if is_known else None) == sample.generation
    is_old = tuple(map(int, version.split(".")[:2])) < (3, 14)
    assert is_known == (is_old and not version.endswith("t"))


def test_a_collection_that_begins_while_the_stack_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    That stack may be of the time before: both are read again.
    """
    python = PythonInMemory("3.11.7")
    gil, flag = _crunching(python)
    walk = StackWalk.stack_and_position
    walks = []

    def begin_to_collect(self: StackWalk, tstate: int) -> tuple[Stack, int]:
        walks.append(walk(self, tstate))
        python.put_int(flag, 1, 4)
        return walks[-1]

    monkeypatch.setattr(StackWalk, "stack_and_position", begin_to_collect)
    sample = python.instance.holders.sample(gil + 32)

    assert sample is not None
    assert (True, 2) == (sample.is_collecting, len(walks))
