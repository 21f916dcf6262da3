"""What waits in windows stand for."""

import pytest

from gilscope.gil.totals.raw import RawEdge, RawProcess, Taken
from gilscope.gil.totals.scaled import ScaledCounts
from gilscope.gil.totals.traces import RawTrace
from gilscope.model.histogram import SLOTS, Histogram
from gilscope.values import Record

_PAIR = (0, 20, 30)
_COND = 0x5000


def _thread(waits: int, ns: int, *, began_ns: int = 0) -> Record:
    return {
        "wait_ns": (ns, 0, 0, 0),
        "waits": (waits, 0, 0, 0),
        "drop_requests": waits,
        "failed_wakeups": 0,
        "failed_wakeup_wait_ns": 0,
        "wait_started_ns": began_ns,
    }


def _histogram(count: int, ns: int) -> Histogram:
    slots = [0] * SLOTS
    slots[7] = count
    return Histogram(tuple(slots), ns)


def _process(waits: int, ns: int) -> RawProcess:
    gil = {"interval_ns": 5, "convoy_waits": waits, "forced_switches": 0, "drop_requests": 0}
    return RawProcess(
        threads={1: _thread(waits, ns)},
        gils={_COND: gil},
        histograms={(_COND, 0): _histogram(waits, ns)},
        edges={_PAIR: RawEdge(ns, waits)},
        slow_drops={30: RawEdge(ns, waits, ns)},
        traces={"t": RawTrace(ns, waits, ns, 9, 9, 30, _COND, 0)},
    )


def _assert_stands_for(process: RawProcess, waits: int, ns: int) -> None:
    assert (waits, ns) == (process.threads[1]["waits"][0], process.threads[1]["wait_ns"][0])
    assert (waits, 5) == (process.gils[_COND]["convoy_waits"], process.gils[_COND]["interval_ns"])
    histogram = process.histograms[_COND, 0]
    assert (waits, ns) == (histogram.slots[7], histogram.sum_ns)
    assert RawEdge(ns, waits) == process.edges[_PAIR]
    assert (ns, waits) == (process.slow_drops[30].ns, process.slow_drops[30].count)


def test_what_grows_is_scaled_and_what_was_is_not() -> None:
    """
    Ten waits while all are seen, ten in half of the time, ten in a fifth of it, and all again.
    """
    scaled = ScaledCounts()
    _assert_stands_for(scaled.scale(_process(10, 100)), 10, 100)
    scaled.weight = 2.0
    _assert_stands_for(scaled.scale(_process(14, 150)), 18, 200)
    _assert_stands_for(scaled.scale(_process(20, 200)), 30, 300)
    scaled.weight = 5.0
    _assert_stands_for(scaled.scale(_process(30, 300)), 80, 800)
    scaled.weight = 1.0
    last = scaled.scale(_process(40, 400))

    _assert_stands_for(last, 90, 900)
    # The longest one is what it is.
    assert 400 == last.slow_drops[30].longest_ns
    # What was seen of a request is told of it.
    assert (400, 40) == (last.traces["t"].wait_ns, last.traces["t"].waits)


def test_nothing_is_lost_by_weights_that_are_no_whole_numbers() -> None:
    """
    However often it is read: 7.3 for each of 10,000 waits.
    """
    scaled = ScaledCounts()
    scaled.scale(_process(0, 0))
    scaled.weight = 7.3
    for waits in range(1, 10_001):
        last = scaled.scale(RawProcess(edges={_PAIR: RawEdge(waits, waits)}))

    assert 73_000 == pytest.approx(last.edges[_PAIR].ns, abs=1)


def test_who_gets_the_place_of_another_one_begins_anew() -> None:
    """
    The number of a thread that has ended, whose record was counted and taken away.
    """
    scaled = ScaledCounts()
    scaled.weight = 3.0
    scaled.scale(RawProcess(threads={1: _thread(10, 100)}))
    scaled.scale(RawProcess())

    later = scaled.scale(RawProcess(threads={1: _thread(12, 120)}))
    at_once = scaled.scale(RawProcess(threads={1: _thread(1, 10)}))

    assert 36 == later.threads[1]["waits"][0]
    assert 3 == at_once.threads[1]["waits"][0]


def test_what_leaves_a_table_takes_what_it_stands_for_with_it() -> None:
    """
    An entry has a new one beside it, and is then taken; with that it stands for as much as before.
    """
    scaled = ScaledCounts()
    scaled.weight = 2.0
    scaled.scale(RawProcess(edges={_PAIR: RawEdge(100, 10)}))
    scaled.weight = 4.0
    both = scaled.scale(RawProcess(edges={_PAIR: RawEdge(130, 13)}))
    assert RawEdge(200 + 120, 20 + 12) == both.edges[_PAIR]

    left = scaled.scale(
        RawProcess(edges={_PAIR: RawEdge(40, 4)}, taken=Taken(edges={_PAIR: RawEdge(110, 11)}))
    )

    taken, kept = left.taken.edges[_PAIR], left.edges[_PAIR]
    assert RawEdge(320 + 80, 32 + 8) == taken + kept
    last = scaled.scale(RawProcess(taken=Taken(edges={_PAIR: RawEdge(40, 4)})))
    assert kept == last.taken.edges[_PAIR]
    assert {} == last.edges


def test_what_was_never_read_before_it_was_taken() -> None:
    """
    It came and rested between two reads.
    """
    scaled = ScaledCounts()
    scaled.weight = 2.5
    taken = scaled.scale(RawProcess(taken=Taken(slow_drops={30: RawEdge(40, 4, 11)})))

    assert {30: RawEdge(100, 10, 11)} == taken.taken.slow_drops


def test_a_wait_in_flight_stays_what_it_is() -> None:
    """
    It is one, and stands for others when it has ended.
    """
    scaled = ScaledCounts()
    scaled.weight = 2.0

    shown = scaled.scale(RawProcess(threads={1: _thread(0, 0, began_ns=77)}))

    assert 77 == shown.threads[1]["wait_started_ns"]
