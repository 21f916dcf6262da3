"""Samples of the holders, of a process that is made up."""

import threading
from collections.abc import Callable, Sequence
from random import Random

import pytest

from gilscope.gil.tracing.holders import sampler as sampler_module
from gilscope.gil.tracing.holders.sampler import HolderSampler, HolderSource
from gilscope.gil.tracing.holders.states import Part, StateReader
from gilscope.model.moment.hold_state import UNKNOWN_HOLD, HoldState, State
from gilscope.process.reads import DirectReads
from gilscope.runtimes.base import HolderSample
from gilscope.system import waiting_thread
from support.commands.gilscope import eventually
from support.recordings.gil import CRUNCHING, SERVING


class _Reads(DirectReads):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.waits_s: list[float] = []
        self.is_given_up = False

    def waited(self, wait_s: float) -> None:
        self.waits_s.append(wait_s)

    def give_up(self) -> None:
        self.is_given_up = True


class _Holders:
    """Locks of which the first is held by turns, and the second never."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = threading.Event()
        self.is_short = threading.Event()
        self.missed = 0
        self.answers = threading.Event()
        self.answers.set()
        self.reads = _Reads()

    def sample(self, cond: int) -> HolderSample | None:
        """Return who holds it."""
        if self.fails.is_set():
            raise OSError("it has ended")
        if self.is_short.is_set():
            self.missed += 1
            raise RuntimeError("can't start new thread")
        self.asked += 1
        self.answers.wait()
        if cond == 2:
            return None
        stack = CRUNCHING if self.asked % 4 == 1 else SERVING
        return HolderSample(stack, None, 0, self.asked, 0, is_collecting=False)

    def is_part_of(self, cond: int, address: int) -> bool:
        """Return whether a thread waits for it, which is never asked here."""
        raise AssertionError((cond, address))

    def is_held_by(self, cond: int, sample: HolderSample) -> bool:
        """Return whether it is still held by the same thread, which is never asked here."""
        raise AssertionError((cond, sample))

    def source(self, conds: Callable[[], Sequence[int]]) -> HolderSource:
        """Return what is asked of a process with these locks, for each of which two wait."""
        states = StateReader(7, self, {})
        return HolderSource(self, states, conds, lambda _: 2, lambda stack: stack, self.reads)


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


class _Clock:
    """Time of a test's own, in which a thread of the agent waits for memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        self.waits = True
        monkeypatch.setattr(sampler_module, "waits_for_memory", lambda _thread: self.waits)
        monkeypatch.setattr(waiting_thread, "time", self)

    def monotonic(self) -> float:
        """Return what `time.monotonic` is to return."""
        return self.now_s

    def passes(self, sampler: HolderSampler, seconds: float) -> None:
        """Have *sampler* look ten times a second for what does not answer."""
        for _ in range(round(10 * seconds)):
            self.now_s += 0.1
            sampler.give_up_unanswered()


def test_memory_that_does_not_answer_costs_its_own_process_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    After two seconds another thread samples the others, and the first one ends when it can.
    """
    clock, hanging, other = _Clock(monkeypatch), _Holders(), _Holders()
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        hanging.answers.clear()
        sampler.add(7, hanging.source(lambda: [1]))
        eventually(lambda: hanging.asked == 1)
        sampler.add(8, other.source(lambda: [1]))
        clock.passes(sampler, 1.9)
        clock.waits = False
        clock.passes(sampler, 5)  # the machine was busy, that is all
        assert not hanging.reads.is_given_up
        clock.waits = True

        clock.passes(sampler, 1)
        eventually(lambda: other.asked >= 3)
        assert hanging.reads.is_given_up
        assert sampler.figures(7) is None
        (lost,) = sampler.lost
        hanging.answers.set()
        lost.join(30)
        assert not lost.is_alive()
    finally:
        hanging.answers.set()
        sampler.close()

    assert hanging.asked == 1
    assert not other.reads.is_given_up


def test_a_process_of_the_same_number_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What was begun of the one before neither counts for it, nor is it given up.
    """
    clock, hanging, next_one = _Clock(monkeypatch), _Holders(), _Holders()
    hanging.answers.clear()
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        sampler.add(7, hanging.source(lambda: [1]))
        eventually(lambda: hanging.asked == 1)
        sampler.add(7, next_one.source(lambda: [1]))
        clock.passes(sampler, 3)
        eventually(lambda: next_one.asked >= 2)
    finally:
        hanging.answers.set()
        sampler.close()

    assert (True, False) == (hanging.reads.is_given_up, next_one.reads.is_given_up)
    assert sampler.figures(7) is not None


def test_waiting_for_memory_that_answers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    All others wait meanwhile: it counts as if it were work.
    """
    clock, slow = _Clock(monkeypatch), _Holders()
    slow.answers.clear()
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        sampler.add(7, slow.source(lambda: [1]))
        eventually(lambda: slow.asked == 1)
        clock.passes(sampler, 1.5)
        slow.answers.set()
        eventually(lambda: slow.asked >= 3)
        clock.waits = False
        clock.passes(sampler, 1)
    finally:
        sampler.close()

    # From the first look on.
    assert [pytest.approx(1.4)] == slow.reads.waits_s


def test_so_many_threads_are_left_behind_and_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    Then nothing is sampled any more, and that is told once; until they come back.
    """
    clock, hanging = _Clock(monkeypatch), _Holders()
    hanging.answers.clear()
    sampler = HolderSampler(Random(1), cpu_share=1.0)  # noqa: S311 - of no secret
    try:
        for number in range(9):
            assert not caplog.text
            sampler.add(7, hanging.source(lambda: [1]))
            eventually(lambda: hanging.asked > len(sampler.lost))
            clock.passes(sampler, 2.2)
            assert number + 1 == len(sampler.lost)
        later = _Holders()
        sampler.add(8, later.source(lambda: [1]))
        clock.passes(sampler, 1)
        assert not later.asked
        hanging.answers.set()
        for lost in sampler.lost:
            lost.join(30)
        clock.passes(sampler, 1)
        eventually(lambda: later.asked)
    finally:
        hanging.answers.set()
        sampler.close()

    assert ["holders are not sampled any more: too many processes do not answer"] == [
        record.getMessage() for record in caplog.records
    ]


def test_where_no_thread_can_be_started_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    That is told once, and there is nothing to wait for at the end.
    """

    def fails(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    sampler, holders = HolderSampler(Random(1), cpu_share=1.0), _Holders()  # noqa: S311 - as above
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fails)
        sampler.add(7, holders.source(lambda: [1]))
        sampler.give_up_unanswered()
        sampler.close()
    (told,) = caplog.records
    sampler, holders = HolderSampler(Random(1), cpu_share=1.0), _Holders()  # noqa: S311 - as above
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fails)
        sampler.add(7, holders.source(lambda: [1]))
    try:
        sampler.give_up_unanswered()
        eventually(lambda: holders.asked)
    finally:
        sampler.close()

    assert "holders are sampled less often: no thread can be started" in told.getMessage()


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
