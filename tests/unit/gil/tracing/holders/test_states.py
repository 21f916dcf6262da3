"""Why a thread keeps the lock: threads of this very process that do what is known."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gilscope.arch.x86_64.architecture import X86_64
from gilscope.gil.tracing.holders import native_calls, states
from gilscope.gil.tracing.holders.states import Part, StateReader
from gilscope.model.moment.hold_state import UNKNOWN_HOLD, HoldState, State
from gilscope.process.files.code_places import CodePlace
from gilscope.process.procfs import read_status
from gilscope.process.threads.activity import read_activity
from gilscope.runtimes.base import HolderSample
from support.commands.gilscope import eventually
from support.recordings.gil import CRUNCHING

_COND = 1
_PYTHON = HoldState(State.PYTHON)
_IN_DEFLATE = HoldState(State.NATIVE, "libz.so.1 deflate")
_DEFLATE = CodePlace("libz.so.1", "deflate")
_EVALUATES = CodePlace("python3", "_PyEval_EvalFrameDefault")


class _Holders:
    """One lock, and who says that it is held."""

    def __init__(self) -> None:
        self.is_held = True
        self.address = 0
        """Of what threads sleep on that wait for it."""

    def sample(self, cond: int) -> HolderSample | None:
        """Return who holds it, which nobody asks here."""
        raise AssertionError(cond)

    def is_part_of(self, cond: int, address: int) -> bool:
        """Return whether who sleeps at *address* waits for it."""
        assert _COND == cond
        return self.address == address

    def is_held_by(self, cond: int, sample: HolderSample) -> bool:
        """Return whether the same thread still holds it."""
        assert (_COND, 7) == (cond, sample.thread)
        return self.is_held


def _sample(
    tid: int | None, switch_number: int = 1, *, is_collecting: bool = False
) -> HolderSample:
    return HolderSample(CRUNCHING, tid, 7, switch_number, 3, is_collecting=is_collecting)


def _told(parts: list[Part]) -> list[tuple[HoldState, int]]:
    return [(part.state, part.ns) for part in parts]


@contextlib.contextmanager
def _asleep_in_a_read() -> Iterator[tuple[int, int]]:
    """Have a thread that reads from a pipe; yield its id and the descriptor."""
    ours, theirs = os.pipe()
    thread = threading.Thread(target=os.read, args=(ours, 1))
    thread.start()
    tid = thread.native_id
    assert tid is not None
    try:
        eventually(lambda: read_status(os.getpid(), tid).state == "S")
        yield tid, ours
    finally:
        os.write(theirs, b"x")
        thread.join()
        os.close(ours)
        os.close(theirs)


@pytest.fixture
def holders() -> _Holders:
    """Return the lock of this test."""
    return _Holders()


@pytest.fixture
def reader(holders: _Holders) -> StateReader:
    """Return what is tested."""
    return StateReader(os.getpid(), holders, X86_64.call_names)


def test_a_thread_that_sleeps_with_the_lock(reader: StateReader) -> None:
    """
    By the name of the call and what its descriptor leads to, from the first sample on.
    """
    with _asleep_in_a_read() as (tid, fd):
        link = Path(f"/proc/self/fd/{fd}").readlink()
        found = reader.parts(_COND, _sample(tid), 10, 1)

    assert [(HoldState(State.SYSCALL, f"read on fd {fd} = {link}"), 10)] == _told(found)


def test_a_thread_that_released_it_to_sleep(reader: StateReader, holders: _Holders) -> None:
    """
    As everybody does: it held the lock a moment before, and is taken to have run Python code.
    """
    holders.is_held = False
    with _asleep_in_a_read() as (tid, _):
        assert [] == reader.parts(_COND, _sample(tid), 10, 1)
        assert [(_PYTHON, 10)] == _told(reader.forget(_COND))


@contextlib.contextmanager
def _asleep_on_a_lock() -> Iterator[tuple[int, int]]:
    """Have a thread that waits for a lock; yield its id and the address that it sleeps on."""
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    tid = thread.native_id or 0
    eventually(lambda: read_activity(os.getpid(), tid).is_in_call)
    call = read_activity(os.getpid(), tid).call
    assert call is not None
    try:
        yield tid, call[1][0]
    finally:
        lock.release()
        thread.join()


def test_a_lock_that_is_handed_over_is_nobodys(reader: StateReader, holders: _Holders) -> None:
    """
    It names the thread that has given it away, which waits for it already, until the next one runs.
    """
    with _asleep_on_a_lock() as (tid, address):
        slept = reader.parts(_COND, _sample(tid), 10, 1)
        assert [(HoldState(State.SYSCALL, f"waits for a lock at {address:#x}"), 10)] == _told(slept)
        holders.address = address
        assert [] == reader.parts(_COND, _sample(tid), 10, 1)
        assert reader.pending(_COND) is None


def test_a_thread_that_collects_garbage(reader: StateReader) -> None:
    """
    With the generation, where that is known.
    """
    sample = replace(_sample(threading.get_native_id(), is_collecting=True), generation=2)

    assert [(HoldState(State.GC, "generation 2"), 10)] == _told(reader.parts(_COND, sample, 10, 1))
    assert [(HoldState(State.GC), 10)] == _told(
        reader.parts(_COND, _sample(None, is_collecting=True), 10, 1)
    )


def test_a_thread_whose_code_is_compiled(reader: StateReader) -> None:
    """
    Garbage that is collected meanwhile is a part of that.
    """
    sample = replace(_sample(threading.get_native_id(), is_collecting=True), is_compiling=True)

    assert [(HoldState(State.JIT), 10)] == _told(reader.parts(_COND, sample, 10, 1))


def test_a_thread_that_cannot_be_told(reader: StateReader) -> None:
    """
    Neither one without a number nor one that has ended.
    """
    ended = threading.Thread(target=bool)
    ended.start()
    ended.join()
    eventually(lambda: not Path(f"/proc/self/task/{ended.native_id}").exists())

    assert [(UNKNOWN_HOLD, 10)] == _told(reader.parts(_COND, _sample(None), 10, 1))
    assert [(UNKNOWN_HOLD, 10)] == _told(reader.parts(_COND, _sample(ended.native_id), 10, 1))


@pytest.fixture
def runs(reader: StateReader, monkeypatch: pytest.MonkeyPatch) -> dict[str, CodePlace]:
    """Return a dictionary whose "place" is where every thread runs."""
    place = {"place": _DEFLATE}
    monkeypatch.setattr(states, "ran_ns", lambda _tid, _for_s: 1)
    monkeypatch.setattr(native_calls, "sampled_instructions", lambda _tid, _for_s: (1,))
    monkeypatch.setattr(reader, "_code", SimpleNamespace(place=lambda _address: place["place"]))
    return place


def _pending(reader: StateReader) -> HoldState:
    pending = reader.pending(_COND)
    assert pending is not None
    return pending.state


def test_what_a_hold_is_at_first_is_told_by_its_next_sample(
    reader: StateReader, runs: dict[str, CodePlace]
) -> None:
    """
    In the same position of a call into C: it has been there all the time.
    """
    tid = threading.get_native_id()

    assert [] == reader.parts(_COND, _sample(tid), 10, 1)
    assert _PYTHON == _pending(reader)
    gap_ns = _burn()
    assert {(_IN_DEFLATE, 10)} < set(_told(reader.parts(_COND, _sample(tid), gap_ns, 1)))

    runs["place"] = _EVALUATES
    assert [] == reader.parts(_COND, _sample(tid, 2), 10, 1)
    assert _IN_DEFLATE == _pending(reader)
    gap_ns = _burn()
    assert {(_PYTHON, 10)} < set(_told(reader.parts(_COND, _sample(tid, 2), gap_ns, 1)))
    assert [] == reader.parts(_COND, _sample(tid, 3), 10, 1)
    assert _PYTHON == _pending(reader)


@pytest.mark.parametrize(
    ("waiting", "position", "state"),
    [
        ((1, 1), 3, _IN_DEFLATE),
        ((1, 1), 4, _PYTHON),
        ((0, 1), 3, _PYTHON),
        ((1, 0), 3, _PYTHON),
    ],
    ids=["same", "elsewhere", "waited late", "waited early"],
)
@pytest.mark.usefixtures("runs")
def test_a_hold_of_one_sample_is_the_call_that_kept_others_waiting_there(
    reader: StateReader, waiting: tuple[int, int], position: int, state: HoldState
) -> None:
    """
    From one sample to the next; without others, C code in that position may be a loop's.
    """
    tid = threading.get_native_id()
    reader.parts(_COND, _sample(tid), 10, waiting[0])
    reader.parts(_COND, _sample(tid), _burn(), waiting[1])

    reader.parts(_COND, replace(_sample(tid, 2), position=position), 10, 1)

    assert state == _pending(reader)


def test_a_thread_without_a_cpu(reader: StateReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It could run, and the kernel's clock for it stands still.
    """
    monkeypatch.setattr(states, "ran_ns", lambda _tid, _for_s: 0)
    tid = threading.get_native_id()

    assert [(HoldState(State.NO_CPU), 10)] == _told(reader.parts(_COND, _sample(tid), 10, 1))


def test_where_perf_events_are_not_permitted(
    reader: StateReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    They are asked for once; what the kernel counts is told all the same.
    """
    asked = []

    def refuse(*arguments: object) -> int:
        asked.append(arguments)
        raise PermissionError

    monkeypatch.setattr(states, "ran_ns", refuse)
    monkeypatch.setattr(native_calls, "sampled_instructions", refuse)
    tid = threading.get_native_id()
    for _ in range(3):
        reader.parts(_COND, _sample(tid), 10, 1)

    assert 1 == len(asked)


def _burn() -> int:
    """Use the CPU until the kernel has counted it; return for how long, ns."""
    began_ns = time.monotonic_ns()
    until_ns = time.thread_time_ns() + 20_000_000
    while time.thread_time_ns() < until_ns:
        pass
    return time.monotonic_ns() - began_ns
