"""The timeline: waits and holds one by one, against the totals of the same recording."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from accuracy.truth import known_waits, started
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import Limits, begin_loading
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation, Tally
from gilscope.model.kinds import Kind, Mode
from gilscope.model.timeline import Timeline
from support.commands.gilscope import eventually
from support.interpreters.known import TIMED_MINORS, Interpreter
from support.tracing.full_mode import assert_sound, held_by, tracing
from support.tracing.observations import thread_of, waits_of
from support.tracing.trace import command_of, looked_after, observation_of

pytestmark = pytest.mark.live

_CONTENTION = ObservationPlan(Mode.CONTENTION)
_PYTHON = "/usr/bin/python3.11"
_TINY = Limits(span_pages=1)
_BUSY = ("--seconds", "1", "--threads", "busy,busy,worker")
_MANY = ("--rounds", "100000", "--threads", "busy")
_LONG_S = 5.0
"""Longer than the ring lasts."""
_OF_HOLDS = ("--rounds", "200", "--threads", "quick,brisk,worker")


@pytest.fixture(scope="module")
def sending() -> Iterator[GilProbe]:
    """The probes, compiled to send every wait and hold."""
    with GilProbe(begin_loading(timeline=True)) as loaded:
        yield loaded


def _timeline(tracer: GilAccount, pid: int) -> Timeline:
    timeline = tracer.timeline(pid)
    assert timeline is not None
    return timeline


def _waits(timeline: Timeline, tid: int) -> dict[Kind, Tally]:
    """Return what the waits of one thread add up to."""
    tallies = dict.fromkeys(Kind, Tally())
    for span in timeline.spans:
        if span.tid == tid and span.kind is not None:
            tallies[span.kind] += Tally(span.ended_ns - span.began_ns, 1)
    return tallies


def _holds(timeline: Timeline, tid: int) -> Tally:
    spans = [span for span in timeline.spans if span.tid == tid and span.kind is None]
    return Tally(sum(span.ended_ns - span.began_ns for span in spans), len(spans))


def _overlaps(timeline: Timeline) -> list[tuple[int, int, int]]:
    """Return where two waits, or two holds, of one thread overlap."""
    tracks: dict[tuple[int, bool], list[tuple[int, int]]] = {}
    for span in timeline.spans:
        track = tracks.setdefault((span.tid, span.kind is None), [])
        track.append((span.began_ns, span.ended_ns))
    return [
        (tid, earlier[1], later[0])
        for (tid, _), spans in tracks.items()
        for earlier, later in pairwise(sorted(spans))
        if later[0] < earlier[1]
    ]


def _counted(observation: GilObservation) -> int:
    """Return how many waits and holds the totals know of."""
    holds = sum(held_by(thread).count for thread in observation.totals.threads)
    return waits_of(observation) + holds


@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_waits_add_up_to_the_totals(interpreter: Interpreter, sending: GilProbe) -> None:
    """
    For each thread and kind, to the nanosecond, and as many as the program knows of.
    """
    with (
        tracing(sending, _CONTENTION) as tracer,
        started(command_of(interpreter), "known_waits.py", "--seconds", "1") as workload,
    ):
        tracer.attach(workload.pid)
        with looked_after(tracer):
            truth = known_waits(workload.run())
        workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        timeline = _timeline(tracer, workload.pid)
        workload.finish()

    assert_sound(observation)
    assert 0 == timeline.dropped
    assert [] == _overlaps(timeline)
    assert {thread.tid: dict(thread.lost) for thread in observation.totals.threads} == {
        thread.tid: _waits(timeline, thread.tid) for thread in observation.totals.threads
    }
    assert {thread.tid for thread in truth.threads} <= {span.tid for span in timeline.spans}


@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_holds_add_up_to_the_totals(interpreter: Interpreter, sending: GilProbe) -> None:
    """
    Each hold is one span, and together they last as long as the thread has held the lock.
    """
    with (
        tracing(sending) as tracer,
        started(command_of(interpreter), "held_known.py", *_OF_HOLDS) as workload,
    ):
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.run()
        workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        timeline = _timeline(tracer, workload.pid)
        workload.finish()

    assert_sound(observation)
    assert 0 == timeline.dropped
    assert [] == _overlaps(timeline)
    assert {thread.tid: held_by(thread) for thread in observation.totals.threads} == {
        thread.tid: _holds(timeline, thread.tid) for thread in observation.totals.threads
    }
    assert {thread.tid: dict(thread.lost) for thread in observation.totals.threads} == {
        thread.tid: _waits(timeline, thread.tid) for thread in observation.totals.threads
    }


def test_full_ring_drops_and_counts() -> None:
    """
    With room for 64 spans most are dropped; drawn and dropped ones are those that were counted.
    """
    with (
        GilProbe(begin_loading(timeline=True, limits=_TINY)) as probe,
        tracing(probe) as tracer,
        started([_PYTHON], "held_known.py", *_BUSY) as workload,
    ):
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.run()
        workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        timeline = _timeline(tracer, workload.pid)
        workload.finish()

    assert "" == observation.invalid
    assert {"span": timeline.dropped} == observation.totals.lost_events
    assert 0 < timeline.dropped
    assert _counted(observation) == len(timeline.spans) + timeline.dropped


def test_ring_that_fills_wakes_the_tracer() -> None:
    """
    Who only waits for something to do loses nothing, though all spans are thrice what fits.
    """
    limits = Limits(span_pages=512)
    with (
        GilProbe(begin_loading(timeline=True, limits=limits)) as probe,
        tracing(probe) as tracer,
        started([_PYTHON], "held_known.py", *_MANY) as workload,
    ):
        tracer.attach(workload.pid)
        with ThreadPoolExecutor() as executor:
            running = executor.submit(workload.run)
            while not running.done():
                tracer.wait(_LONG_S)
                tracer.tick()
        workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        timeline = _timeline(tracer, workload.pid)
        workload.finish()

    assert_sound(observation)
    assert 0 == timeline.dropped
    assert 100_000 < _counted(observation) == len(timeline.spans)


def test_what_goes_on_is_drawn_up_to_the_end(sending: GilProbe) -> None:
    """
    A hold that has not ended when somebody looks, and the wait for it, last until then.
    """
    with (
        tracing(sending) as tracer,
        started([_PYTHON], "long_hold.py", "--seconds", "0.5") as workload,
    ):
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.command("hold")
            during, timeline = eventually(lambda: _with_a_waiter(tracer, workload.pid))[0]
            workload.answer()
        workload.finish()
    waiter = thread_of(during, workload.ready["waiter"])
    holder = thread_of(during, workload.ready["holder"])
    *_, hold, wait = sorted(timeline.spans, key=lambda span: (span.ended_ns, span.kind is not None))
    at_ns = during.totals.at_ns

    assert (waiter.tid, at_ns - waiter.waiting_ns, at_ns) == (
        wait.tid,
        wait.began_ns,
        wait.ended_ns,
    )
    assert Kind.CONVOY is wait.kind
    assert waiter.wait_ns == sum(tally.ns for tally in _waits(timeline, waiter.tid).values())
    assert (holder.tid, None) == (hold.tid, hold.kind)
    assert held_by(holder).ns == _holds(timeline, holder.tid).ns
    assert hold.began_ns < wait.began_ns


def _with_a_waiter(tracer: GilAccount, pid: int) -> list[tuple[GilObservation, Timeline]]:
    observation = observation_of(tracer, pid)
    waiting = [thread for thread in observation.totals.threads if thread.waiting_ns > 10_000_000]
    return [(observation, _timeline(tracer, pid))] if waiting else []


def test_worst_moment_is_chosen_among_what_is_sent() -> None:
    """
    The one long wait, with who held the lock meanwhile; there is no whole timeline.
    """
    with (
        GilProbe(begin_loading(moments=True)) as probe,
        tracing(probe, _CONTENTION) as tracer,
        started([_PYTHON], "long_hold.py", "--seconds", "0.5") as workload,
    ):
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.command("hold")
            workload.answer()
        workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        moment = tracer.moment(workload.pid)
        whole = tracer.timeline(workload.pid)
        workload.finish()

    assert whole is None
    assert moment is not None
    assert waits_of(observation) == moment.chosen_among
    assert (200_000_000, (), False) == (
        moment.ended_ns - moment.began_ns,
        moment.unseen,
        moment.has_holds,
    )
    longest = max(moment.spans, key=lambda span: span.ended_ns - span.began_ns)
    assert (workload.ready["waiter"], True) == (longest.tid, longest.began_ns <= moment.began_ns)


def test_no_more_are_sent_in_a_second_than_a_moment_needs() -> None:
    """
    The others are counted as ever, and no event is lost; when they were is told.
    """
    limits = Limits(spans_a_second=10)
    with (
        GilProbe(begin_loading(moments=True, limits=limits)) as probe,
        tracing(probe) as tracer,
        started([_PYTHON], "held_known.py", *_BUSY) as workload,
    ):
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.run()
        workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        moment = tracer.moment(workload.pid)
        workload.finish()

    assert_sound(observation)
    assert moment is not None
    assert 0 < moment.chosen_among <= 3 * 10 < waits_of(observation)


def test_nothing_is_sent_unless_it_was_asked_for(tracer: GilAccount) -> None:
    """
    Then there is no timeline, rather than an empty one.
    """
    with started([_PYTHON], "exact_count.py") as workload:
        tracer.attach(workload.pid)

        assert tracer.timeline(workload.pid) is None
        workload.finish()
