"""Samples of the holders, of a process that is made up."""

import threading
from collections.abc import Callable, Sequence
from random import Random

import pytest

from gilscope.gil.tracing.holders import sampler as sampler_module
from gilscope.gil.tracing.holders.sampler import HolderSampler, HolderSource
from gilscope.gil.tracing.holders.states import Part, StateReader
from gilscope.model.moment.hold_state import UNKNOWN_HOLD, HoldState, State
from gilscope.runtimes.base import HolderSample
from support.commands.gilscope import eventually
from support.recordings.gil import CRUNCHING, SERVING

_READ_NS = 100_000_000
"""What each sample takes of another thread, as far as it is told."""


class _Holders:
    """Locks of which the first is held by turns, and the second never."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = threading.Event()
        self.is_short = threading.Event()
        self.missed = 0
        self.read_cpu_ns = 0

    def sample(self, cond: int) -> HolderSample | None:
        """Return who holds it."""
        if self.fails.is_set():
            raise OSError("it has ended")
        if self.is_short.is_set():
            self.missed += 1
            raise RuntimeError("can't start new thread")
        self.asked += 1
        self.read_cpu_ns += _READ_NS
        if cond == 2:
            return None
        stack = CRUNCHING if self.asked % 4 == 1 else SERVING
        return HolderSample(stack, None, 0, self.asked, 0, is_collecting=False)

    def is_held_by(self, cond: int, sample: HolderSample) -> bool:
        """Return whether it is still held by the same thread, which is never asked here."""
        raise AssertionError((cond, sample))

    def source(self, conds: Callable[[], Sequence[int]]) -> HolderSource:
        """Return what is asked of a process with these locks, for each of which two wait."""
        states = StateReader(7, self, {})
        return HolderSource(
            self, states, conds, lambda _: 2, lambda stack: stack, lambda: self.read_cpu_ns
        )


def test_held_time_is_a_part_of_the_time_and_stays() -> None:
    """
    By whom it was held, each sample for the time since the last one; an end leaves what was seen.
    """
    holders = _Holders()
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        sampler.add(7, holders.source(lambda: [1, 2]))
        eventually(lambda: holders.asked >= 12)
        holders.fails.set()
        figures = sampler.figures(7)
    finally:
        sampler.close()

    assert figures is not None
    assert figures.samples >= 5
    assert {CRUNCHING, SERVING} == {held.holder for held in figures.holders}
    assert figures.sampled_ns == sum(held.held_ns for held in figures.holders)
    assert 2 * figures.sampled_ns == sum(held.waited_ns for held in figures.holders)
    assert {UNKNOWN_HOLD} == {held.state for held in figures.holders}
    assert sampler.cpu_ns > 0


def test_what_reading_takes_of_other_threads_is_paid_for() -> None:
    """
    Memory is read there, and that is most of what a sample costs.
    """
    holders = _Holders()
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        sampler.add(7, holders.source(lambda: [1]))
        eventually(lambda: holders.asked >= 2)
    finally:
        sampler.close()

    assert sampler.cpu_ns >= holders.asked * _READ_NS


def test_shortage_is_told_once_and_may_pass(caplog: pytest.LogCaptureFixture) -> None:
    """
    In words, without a traceback; the process is sampled again as soon as there is room.
    """
    holders = _Holders()
    holders.is_short.set()
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        sampler.add(7, holders.source(lambda: [1]))
        eventually(lambda: holders.missed >= 3)
        holders.is_short.clear()
        eventually(lambda: holders.asked >= 3)
    finally:
        sampler.close()

    (told,) = caplog.records
    assert "holders are sampled less often: no thread can be started" in told.getMessage()
    assert told.exc_info is None


def test_failure_ends_the_samples_of_that_process(caplog: pytest.LogCaptureFixture) -> None:
    """
    It is told with all that is known of it, for it is a defect.
    """
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        sampler.add(7, _Holders().source(lambda: [1 // 0]))
        eventually(lambda: caplog.records)
    finally:
        sampler.close()

    assert "the holders of process 7 are not sampled any more" == caplog.records[0].getMessage()
    assert caplog.records[0].exc_info is not None
    assert sampler.figures(7) is None


def test_what_is_dropped_is_forgotten() -> None:
    """
    And what was never there is not known.
    """
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        sampler.add(7, _Holders().source(lambda: [1]))
        sampler.drop(7)

        assert sampler.figures(7) is None
        assert sampler.figures(8) is None
    finally:
        sampler.close()


def test_details_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A program may read from ever new sockets: what is beyond is told without the socket.
    """

    def parts(
        _reader: StateReader, _cond: int, sample: HolderSample, gap_ns: int, waiting: int
    ) -> list[Part]:
        state = HoldState(State.SYSCALL, f"read on fd {sample.switch_number}")
        return [Part(sample, state, gap_ns, waiting)]

    monkeypatch.setattr(StateReader, "parts", parts)
    monkeypatch.setattr(sampler_module, "_MOST_DETAILS", 2)
    holders = _Holders()
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        sampler.add(7, holders.source(lambda: [1]))
        eventually(lambda: holders.asked >= 6)
        figures = sampler.figures(7)
    finally:
        sampler.close()

    assert figures is not None
    assert {"read on fd 1", "read on fd 2", ""} == {held.state.detail for held in figures.holders}
