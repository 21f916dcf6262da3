"""From map records to totals."""

from typing import Any

from gilscope.gil.account import RawProcess, process_totals, thread_totals, unknown_gils
from gilscope.gil.losses import Loss
from gilscope.histogram import EMPTY
from gilscope.model import Cause, Gil, Kind, Tally

_NOW_NS = 1_000_000_000_000
_MS = 1_000_000


def _record(**fields: Any) -> dict[str, Any]:
    record = {
        "wait_ns": (0, 0, 0, 0),
        "waits": (0, 0, 0, 0),
        "wait_started_ns": 0,
        "yield_started_ns": 0,
        "forced_drop_ns": 0,
        "interval_ns": 5 * _MS,
        "cause": 0,
        "drop_requests": 0,
        "exited_ns": 0,
    }
    return record | fields


def _lost(**fields: Any) -> dict[Kind, Tally]:
    totals = thread_totals(7, _record(**fields), "worker", _NOW_NS)
    return {kind: tally for kind, tally in totals.lost.items() if tally != Tally()}


def test_finished_waits_are_counted_by_kind() -> None:
    """
    The four numbers of the probe are the four kinds.
    """
    assert {
        Kind.BLOCKING_CALL: Tally(1, 10),
        Kind.PREEMPTION: Tally(2, 20),
        Kind.UNKNOWN: Tally(3, 30),
        Kind.CONVOY: Tally(4, 40),
    } == _lost(wait_ns=(1, 2, 3, 4), waits=(10, 20, 30, 40))


def test_wait_in_flight_counts_up_to_now_but_not_as_a_wait() -> None:
    """
    Its time is there while it lasts; its number comes with its end.
    """
    assert {Kind.BLOCKING_CALL: Tally(2 * _MS)} == _lost(wait_started_ns=_NOW_NS - 2 * _MS)
    assert {Kind.PREEMPTION: Tally(9 * _MS)} == _lost(wait_started_ns=_NOW_NS - 9 * _MS, cause=1)


def test_wait_in_flight_becomes_a_convoy_after_one_interval() -> None:
    """
    A returning thread that has waited for a switch interval is in a convoy already.
    """
    assert {Kind.CONVOY: Tally(5 * _MS)} == _lost(wait_started_ns=_NOW_NS - 5 * _MS)


def test_wait_that_began_after_the_clock_was_read_counts_as_nothing() -> None:
    """
    No counter ever runs back because of it.
    """
    assert {} == _lost(wait_started_ns=_NOW_NS + 1)


def test_yield_counts_from_the_drop() -> None:
    """
    A thread that was made to yield waits, before and while it sleeps.
    """
    expected = {Kind.PREEMPTION: Tally(3 * _MS)}

    assert expected == _lost(forced_drop_ns=_NOW_NS - 3 * _MS)
    assert expected == _lost(yield_started_ns=_NOW_NS - 3 * _MS)
    assert expected == _lost(
        forced_drop_ns=_NOW_NS - 3 * _MS, wait_started_ns=_NOW_NS - 3 * _MS, cause=1
    )


def test_gil_that_nobody_waited_for_has_zeros() -> None:
    """
    A process without contention has its figures, and they are zero.
    """
    totals = process_totals(RawProcess(), _NOW_NS, {4096: Gil(4096, 0)}, {})

    (gil,) = totals.gils
    assert dict.fromkeys(Cause, EMPTY) == gil.waits
    assert (0, 0, 0, EMPTY) == (
        gil.convoy_waits,
        gil.forced_switches,
        gil.drop_requests,
        gil.drop_latency,
    )


def test_histograms_belong_to_their_lock() -> None:
    """
    Two interpreters with a GIL of their own do not mix.
    """
    slots = (0,) * 20 + (2,) + (0,) * 15
    gil = {"interval_ns": 5, "convoy_waits": 1, "forced_switches": 2, "drop_requests": 3}
    raw = RawProcess(
        gils={4096: gil, 8192: gil},
        histograms={(8192, 1): {"slots": slots, "sum_ns": 77}},
    )

    first, second = process_totals(raw, _NOW_NS, {4096: Gil(4096, 0), 8192: Gil(8192, 1)}, {}).gils

    assert EMPTY == first.waits[Cause.PREEMPTION]
    assert (2, 77) == (second.waits[Cause.PREEMPTION].count, second.waits[Cause.PREEMPTION].sum_ns)


def test_losses_are_named() -> None:
    """
    Only what has occurred is listed.
    """
    raw = RawProcess(lost={Loss.ABANDONED: 2, Loss.READ_FAULT: 0})

    assert {"abandoned": 2} == process_totals(raw, _NOW_NS, {}, {}).lost_events


def test_lock_that_is_no_gil_is_noticed() -> None:
    """
    What was waited on must be one of the process' own locks.
    """
    raw = RawProcess(gils={1: {}, 2: {}})

    assert [2] == unknown_gils(raw, [1, 3])
