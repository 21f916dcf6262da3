"""Finds interpreters, locks and threads in memory, and doubts what it finds."""

import re

import pytest

from gilscope.model.gil import Gil
from gilscope.process.remote_read import LimitExceeded, TornRead
from gilscope.runtimes.cpython.detect import Interpreter
from gilscope.runtimes.cpython.runtime import (
    PythonThread,
    is_gil_off,
    kernel_thread_id,
    read_gils,
    read_threads,
    runtime_of,
)
from support.gil.python_in_memory import LAYOUTS, PythonInMemory

every_version = pytest.mark.parametrize("version", LAYOUTS)
one_gil = pytest.mark.parametrize(
    "version", ["3.6.15", "3.7.16", "3.8.18", "3.9.18", "3.10.13", "3.11.7"]
)
own_gils = pytest.mark.parametrize("version", ["3.12.1", "3.13.5", "3.14.10", "3.15.2"])


def test_addresses_are_biased() -> None:
    """A file that is loaded elsewhere has its runtime and its types elsewhere by as much."""
    memory = PythonInMemory()
    runtime = runtime_of(memory, Interpreter((3, 9), "3.9.2", 0x1000, 0x2000, None), 0x5000_0000)
    assert (0x5000_1000, 0x5000_2000) == (runtime.address, runtime.code_type)
    assert (memory, LAYOUTS["3.9.18"]) == (runtime.memory, runtime.layout)


_FOR_GOOD = (1 << 31) - 1


@pytest.mark.parametrize(
    ("enabled", "is_off"),
    [((), None), ((0,), True), ((_FOR_GOOD,), False), ((2,), True), ((0, _FOR_GOOD), False)],
    ids=["not initialised", "off", "on", "while two modules are imported", "of one interpreter"],
)
def test_a_free_threaded_build_may_have_its_gil_on(
    enabled: tuple[int, ...], *, is_off: bool | None
) -> None:
    """What it says of each of its locks decides, and one that is on for good is enough."""
    python = PythonInMemory("3.14.9t")
    following = 0
    for number, value in enumerate(enabled):
        following = python.interpreter(number, following, python.gil(enabled=value))

    assert is_gil_off(python.runtime) is is_off


def test_an_ordinary_build_always_has_its_gil() -> None:
    """Whatever is in front of its lock."""
    assert is_gil_off(PythonInMemory("3.14.10").runtime) is False


@every_version
def test_before_initialisation_there_is_nothing(version: str) -> None:
    """A process that has not started Python yet has no lock and no thread."""
    python = PythonInMemory(version)
    assert ([], []) == (read_gils(python.runtime), read_threads(python.runtime))


@every_version
def test_the_gil_of_the_main_interpreter(version: str) -> None:
    """The lock is identified by the address of its condition variable."""
    python = PythonInMemory(version)
    gil = python.gil()
    python.interpreter(0, gil=gil)
    assert [Gil(cond=gil + 32, interpreter_id=0)] == read_gils(python.runtime)


@one_gil
def test_before_3_12_all_interpreters_share_one_gil(version: str) -> None:
    """A second interpreter adds no lock."""
    python = PythonInMemory(version)
    gil = python.gil()
    python.interpreter(1, python.interpreter(0))
    assert [Gil(cond=gil + 32, interpreter_id=0)] == read_gils(python.runtime)


@own_gils
def test_a_shared_gil_belongs_to_the_lowest_id(version: str) -> None:
    """Of three interpreters, one with its own GIL and one that shares, there are two locks."""
    python = PythonInMemory(version)
    shared, own = python.gil(), python.gil(locked=0)
    # The order of the list decides nothing.
    second = python.interpreter(2, python.interpreter(1, gil=own), gil=shared)
    python.interpreter(0, second, gil=shared)
    assert [Gil(shared + 32, 0), Gil(own + 32, 1)] == read_gils(python.runtime)


@own_gils
def test_an_interpreter_that_is_being_made_has_no_gil_yet(version: str) -> None:
    """A NULL pointer to the lock is left out."""
    python = PythonInMemory(version)
    gil = python.gil()
    python.interpreter(1, python.interpreter(0, gil=gil), gil=0)
    assert [Gil(gil + 32, 0)] == read_gils(python.runtime)


@every_version
def test_a_gil_that_is_not_created_yet_is_left_out(version: str) -> None:
    """CPython marks that state with locked = -1."""
    python = PythonInMemory(version)
    python.interpreter(0, gil=python.gil(locked=-1))
    assert [] == read_gils(python.runtime)


@every_version
@pytest.mark.parametrize(("locked", "interval_us"), [(2, 5000), (1, 0), (0, -1)])
def test_what_is_no_gil_is_not_taken_for_one(version: str, locked: int, interval_us: int) -> None:
    """Values that a GIL never has show that the layout does not fit: no identity comes out."""
    python = PythonInMemory(version)
    python.interpreter(0, gil=python.gil(locked=locked, interval_us=interval_us))
    words = f"locked {locked}, interval {interval_us}"
    with pytest.raises(TornRead, match=re.escape(words)):
        read_gils(python.runtime)


@every_version
def test_threads_of_all_interpreters(version: str) -> None:
    """Each list is followed to its end, and each thread knows its interpreter."""
    python = PythonInMemory(version)
    main = python.interpreter(0)
    first = python.thread(main, thread_id=0x7F11_0000_0700, native_thread_id=11)
    second = python.thread(main, first, thread_id=0x7F22_0000_0700, native_thread_id=12)
    other = python.interpreter(1, main)
    inside = python.thread(other, thread_id=0x7F22_0000_0700, native_thread_id=12)
    ids = (12, 12, 11) if python.layout.native_thread_id is not None else (None, None, None)
    assert [
        PythonThread(inside, 1, 0x7F22_0000_0700, ids[0]),
        PythonThread(second, 0, 0x7F22_0000_0700, ids[1]),
        PythonThread(first, 0, 0x7F11_0000_0700, ids[2]),
    ] == read_threads(python.runtime)


def test_a_thread_that_has_not_run_yet_has_no_kernel_id() -> None:
    """CPython fills in the id when the thread first runs; 0 is nobody's."""
    python = PythonInMemory("3.12.1")
    python.thread(python.interpreter(0))
    (thread,) = read_threads(python.runtime)
    assert thread.native_thread_id is None
    assert kernel_thread_id(python.runtime, thread) is None


@every_version
def test_a_list_of_threads_that_runs_in_a_circle(version: str) -> None:
    """A torn list ends in an error, never in an endless loop."""
    python = PythonInMemory(version)
    main = python.interpreter(0)
    last = python.thread(main)
    python.put_int(last + python.layout.tstate_next, python.thread(main, last))
    with pytest.raises(TornRead, match="a list of 2 entries does not end"):
        read_threads(python.runtime)


@every_version
def test_a_thread_of_another_interpreter_shows_a_torn_list(version: str) -> None:
    """Freed and reused memory is recognised by the thread's own pointer back."""
    python = PythonInMemory(version)
    main = python.interpreter(0)
    thread = python.thread(main)
    python.put_int(thread + python.layout.tstate_interpreter, thread)
    with pytest.raises(TornRead, match="belongs to another interpreter"):
        read_threads(python.runtime)


@every_version
@pytest.mark.parametrize("pointer", [0x7E00_0000_0000, 0x7F00_0000_0003, 1 << 63])
def test_a_list_that_leads_nowhere(version: str, pointer: int) -> None:
    """Unmapped, odd and impossible addresses are torn reads."""
    python = PythonInMemory(version)
    python.put_int(python.runtime.address + python.layout.interpreters_head, pointer)
    with pytest.raises(TornRead):
        read_threads(python.runtime)


@pytest.mark.parametrize(
    "version", [name for name, layout in LAYOUTS.items() if layout.interpreter_id is not None]
)
@pytest.mark.parametrize("number", [-1, 1 << 50])
def test_an_impossible_interpreter_id(version: str, number: int) -> None:
    """What has no sensible id is no interpreter."""
    python = PythonInMemory(version)
    python.interpreter(number)
    with pytest.raises(TornRead, match=f"id {number}"):
        read_gils(python.runtime)


def test_the_interpreters_own_word_on_the_kernel_id() -> None:
    """From 3.11 on nothing but the thread state is read."""
    python = PythonInMemory("3.11.7")
    assert kernel_thread_id(python.runtime, PythonThread(8, 0, 8, 4711)) == 4711
    assert python.reads == 0


@pytest.mark.parametrize(
    ("tid", "points_to_itself", "expected"),
    [
        (4711, True, 4711),
        (0, True, None),
        (-1, True, None),
        (1 << 23, True, None),
        (9, False, None),
    ],
    ids=["alive", "ended", "negative", "beyond pid_max", "no descriptor"],
)
def test_the_kernel_id_in_the_descriptor_of_the_c_library(
    tid: int, *, points_to_itself: bool, expected: int | None
) -> None:
    """Before 3.11 the id is glibc's, if that is a thread descriptor and the id is possible."""
    python = PythonInMemory("3.10.13")
    descriptor = python.new(2304)
    python.put_int(descriptor + 16, descriptor if points_to_itself else descriptor + 64)
    python.put_int(descriptor + 720, tid, 4)
    thread = PythonThread(8, 0, descriptor, None)
    assert expected == kernel_thread_id(python.runtime, thread)


@pytest.mark.parametrize("thread_id", [0, 0x7E00_0000_0000])
def test_a_descriptor_that_cannot_be_read(thread_id: int) -> None:
    """A thread whose descriptor is gone has no known id."""
    python = PythonInMemory("3.8.18")
    assert kernel_thread_id(python.runtime, PythonThread(8, 0, thread_id, None)) is None


@pytest.mark.parametrize("version", ["3.12.1"])
def test_more_threads_than_any_program_has(version: str) -> None:
    """
    The lists of all interpreters together have an end, and are not read again and again.
    """
    python = PythonInMemory(version)
    interpreter = 0
    for number in range(3):
        interpreter = python.interpreter(number, interpreter)
        threads = 0
        for _ in range(300):
            threads = python.thread(interpreter, threads)
    assert 900 == len(read_threads(python.runtime))
    before = python.reads

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gilscope.runtimes.cpython.runtime._MOST_THREADS", 500)
        with pytest.raises(LimitExceeded, match="more than 500 threads"):
            read_threads(python.runtime)
        assert python.reads - before < 5 * 500


@every_version
def test_more_interpreters_than_any_program_has(version: str) -> None:
    """
    The same for these.
    """
    python = PythonInMemory(version)
    following = 0
    gil = python.gil()
    for number in range(5):
        following = python.interpreter(number, following, gil)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gilscope.runtimes.cpython.runtime._MOST_INTERPRETERS", 4)
        with pytest.raises(LimitExceeded, match="more than 4 interpreters"):
            read_gils(python.runtime)


def test_before_3_7_interpreters_are_counted_from_the_oldest() -> None:
    """They have no number of their own: the main one, which outlives all others, is 0."""
    python = PythonInMemory("3.6.15")
    main = python.interpreter(0)
    python.thread(main, thread_id=1)
    newest = python.interpreter(0, python.interpreter(0, main))
    python.thread(newest, thread_id=3)
    python.gil()

    found = {thread.thread_id: thread.interpreter_id for thread in read_threads(python.runtime)}
    assert {1: 0, 3: 2} == found
    assert [0] == [gil.interpreter_id for gil in read_gils(python.runtime)]
