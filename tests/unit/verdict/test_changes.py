"""What changes of the program would bring, out of recordings whose answer is known."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from gilscope.model.application import EVERYBODYS
from gilscope.model.gil import Edge, ProcessTotals, Recording, Tally
from gilscope.model.histogram import EMPTY
from gilscope.model.kinds import Kind
from gilscope.model.moment.hold_state import HoldState, State
from gilscope.verdict.changes import (
    Changes,
    FewerThreads,
    changes_of,
    fewer_threads,
    other_process,
    shorter_interval,
)
from support.recordings.gil import (
    CRUNCHING,
    MS,
    SERVING,
    convoy,
    gil,
    held_up_of,
    histogram,
    observation,
    stack,
    thread,
)

_LATENCY_NS = 2**17
"""Of every drop: the upper bound of its slot."""
_MEDIAN_NS = 125_633
"""The middle of the slot, which begins an eighth of an octave below it."""


def _queueing(wait_ns: int, number: int = 100, *, interval_ns: int = 5 * MS) -> ProcessTotals:
    """Return what there is where a thread queues *number* times for *wait_ns*."""
    threads = (thread(1, "serve", {Kind.CONVOY: Tally(number * wait_ns, number)}),)
    lock = replace(
        gil(blocking_call=histogram(*[wait_ns] * number)),
        interval_ns=interval_ns,
        drop_latency=histogram(*[_LATENCY_NS] * number),
    )
    return observation(threads, (lock,)).totals


def _blamed(*edges: Edge, state: State = State.PYTHON) -> ProcessTotals:
    totals = convoy().observation.totals
    threads = (thread(1, "serve", {Kind.CONVOY: sum((e.lost for e in edges), start=Tally())}),)
    held_up = held_up_of(edges, HoldState(state))
    return replace(totals, threads=threads, edges=edges, held_up=held_up)


def _preempted(waiting_ns: Iterable[int]) -> Recording:
    """Return two seconds of threads that were preempted for so long."""
    threads = tuple(
        thread(tid, "crunch", {Kind.PREEMPTION: Tally(ns, 10)})
        for tid, ns in enumerate(waiting_ns, 1)
    )
    return Recording(observation(threads), "contention", 2000 * MS)


def test_a_turn_takes_the_interval_and_the_drop() -> None:
    """
    Two turns of 5 ms and a drop make two turns of half a millisecond and a drop.
    """
    found = shorter_interval(_queueing(2 * (5 * MS + _MEDIAN_NS)))

    assert found is not None
    assert (5 * MS, MS // 2, 100) == (found.interval_ns, found.shorter_ns, found.waits)
    assert _MEDIAN_NS == found.latency_ns
    assert 2.0 == found.turns
    assert 2 * (MS // 2 + _MEDIAN_NS) == found.expected_ns
    assert (5 * MS + _MEDIAN_NS) / (MS // 2 + _MEDIAN_NS) == found.switches


@pytest.mark.parametrize(
    ("wait_ns", "most_ns"),
    [
        # A turn and no more: it is what is left of it.
        (5 * MS + _MEDIAN_NS, MS // 2 + _MEDIAN_NS),
        # 11 ms for which neither of them had a CPU, perhaps.
        (16 * MS, 11 * MS + MS // 2),
        # Shorter than a turn: no more than that comes out.
        (5 * MS, MS // 2 + _MEDIAN_NS),
    ],
)
def test_of_each_wait_one_interval_is_known_to_shrink(wait_ns: int, most_ns: int) -> None:
    """
    The rest of it may be turns, which shrink as well, or the lack of a CPU, which need not.
    """
    found = shorter_interval(_queueing(wait_ns))

    assert found is not None
    assert (MS // 2 + _MEDIAN_NS, most_ns) == (found.least_ns, found.most_ns)


def test_slow_drops_leave_nothing_to_gain() -> None:
    """
    A holder that drops it after a second does not hear a request any sooner.
    """
    totals = _queueing(1005 * MS)
    (lock,) = totals.gils
    slow = replace(lock, drop_latency=histogram(*[1000 * MS] * 100))

    assert shorter_interval(replace(totals, gils=(slow,))) is None


@pytest.mark.parametrize(
    "totals",
    [
        _queueing(15 * MS, 9),
        _queueing(15 * MS, interval_ns=100_000),
        _queueing(15 * MS, interval_ns=50_000),
        replace(_queueing(15 * MS), gils=(replace(gil(), drop_latency=EMPTY),)),
        replace(
            _queueing(15 * MS), gils=(*_queueing(15 * MS).gils, replace(gil(1), interval_ns=MS))
        ),
    ],
)
def test_interval_that_nothing_can_be_said_of(totals: ProcessTotals) -> None:
    """
    Few waits, one that is short already, no drop that was seen, or several intervals.
    """
    assert shorter_interval(totals) is None


def test_other_process_saves_what_others_waited_behind_it() -> None:
    """
    What it waited behind itself is another matter, and what is behind others stays.
    """
    other = stack(("log", "/srv/app.py", 30, 31))
    found = other_process(
        _blamed(
            Edge(Kind.CONVOY, SERVING, CRUNCHING, Tally(700 * MS, 7)),
            Edge(Kind.PREEMPTION, CRUNCHING, CRUNCHING, Tally(200 * MS, 2)),
            Edge(Kind.CONVOY, SERVING, other, Tally(100 * MS, 1)),
        ),
        EVERYBODYS,
    )

    assert found is not None
    assert "crunch" == found.frame.function
    assert (700 * MS, 200 * MS, 1000 * MS) == (found.others_ns, found.own_ns, found.lost_ns)


@pytest.mark.parametrize("state", [State.NO_CPU, State.PAGE_FAULT])
def test_other_process_has_no_more_cpu_or_memory(state: State) -> None:
    """
    Whoever kept the GIL for want of these is not helped.
    """
    edge = Edge(Kind.CONVOY, SERVING, CRUNCHING, Tally(700 * MS, 7))

    assert other_process(_blamed(edge, state=state), EVERYBODYS) is None


def test_other_process_for_next_to_nothing_is_not_told() -> None:
    """
    Less than a tenth of what is lost.
    """
    nowhere = stack()
    edges = (
        Edge(Kind.CONVOY, SERVING, CRUNCHING, Tally(9 * MS, 7)),
        Edge(Kind.CONVOY, SERVING, nowhere, Tally(91 * MS, 7)),
    )

    assert other_process(_blamed(*edges), EVERYBODYS) is None
    assert other_process(_blamed(), EVERYBODYS) is None


@pytest.mark.parametrize(
    ("waiting_ms", "enough"),
    [((1000, 1000), 1), ((1000, 1100), 1), ((1500, 1500, 1500, 1500), 1), ((700, 700, 700), 2)],
)
def test_threads_that_take_turns(waiting_ms: tuple[int, ...], enough: int) -> None:
    """
    As many as do not wait at any moment get as far.
    """
    found = fewer_threads(_preempted(ms * MS for ms in waiting_ms))

    waiting = sum(waiting_ms) / 2000
    assert FewerThreads("crunch", len(waiting_ms), waiting, enough) == found


@pytest.mark.parametrize("waiting_ms", [(1000,), (300, 300), (1000,) * 17])
def test_threads_that_are_not_too_many(waiting_ms: tuple[int, ...]) -> None:
    """
    One, two that hardly wait, or so many that they are likely to come and go.
    """
    assert fewer_threads(_preempted(ms * MS for ms in waiting_ms)) is None


def test_nothing_lost_nothing_to_change() -> None:
    """
    And then there is nothing to tell.
    """
    assert Changes() == changes_of(Recording(observation(), "contention", 2000 * MS))
    assert not Changes()
