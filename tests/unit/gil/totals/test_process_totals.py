"""From map records to totals."""

from typing import Any

from gilscope.gil.abi import Loss
from gilscope.gil.totals.process_totals import process_totals, thread_totals, unknown_gils
from gilscope.gil.totals.raw import Holding, RawLock, RawProcess
from gilscope.model.gil import Gil, HoldTotals, Tally
from gilscope.model.histogram import EMPTY, SLOTS, slot_of
from gilscope.model.kinds import Cause, Kind
from support.recordings.durations import histogram

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
        "failed_wakeups": 0,
        "failed_wakeup_wait_ns": 0,
        "failed_since_ns": 0,
        "exited_ns": 0,
        "hold_ns": 0,
        "holds": 0,
        "last_hold_began_ns": 0,
    }
    return record | fields


def _lost(**fields: Any) -> dict[Kind, Tally]:
    totals = thread_totals(7, _record(**fields), "worker", _NOW_NS)
    return {kind: tally for kind, tally in totals.lost.items() if tally != Tally()}


def test_time_after_failed_wakeups_includes_a_wait_in_flight() -> None:
    """
    From the first of them on, as far as the wait has lasted.
    """
    finished = _record(failed_wakeups=3, failed_wakeup_wait_ns=5 * _MS)
    waiting = _record(
        failed_wakeups=4, failed_wakeup_wait_ns=5 * _MS, failed_since_ns=_NOW_NS - 2 * _MS
    )

    for record, expected in ((finished, Tally(5 * _MS, 3)), (waiting, Tally(7 * _MS, 4))):
        assert expected == thread_totals(7, record, "worker", _NOW_NS).failed_wakeups


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
    A thread that was preempted waits, before and while it sleeps.
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
    waits = histogram(70_000, 7_000)
    gil = {"interval_ns": 5, "convoy_waits": 1, "forced_switches": 2, "drop_requests": 3}
    raw = RawProcess(
        gils={4096: gil, 8192: gil},
        histograms={(8192, 1): waits},
    )

    first, second = process_totals(raw, _NOW_NS, {4096: Gil(4096, 0), 8192: Gil(8192, 1)}, {}).gils

    assert EMPTY == first.waits[Cause.PREEMPTION]
    assert waits == second.waits[Cause.PREEMPTION]


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


# Holds.

_COND, _OTHER_COND = 4096, 8192
_GILS = {_COND: Gil(_COND, 0), _OTHER_COND: Gil(_OTHER_COND, 1)}


def _lock(holding: Holding | None = None, *holds_ns: int, **credits_ns: int) -> RawLock:
    """Return a lock with the holds that have ended; credits are by thread: t7, or nobody."""
    slots = [0] * SLOTS
    for ns in holds_ns:
        slots[slot_of(ns)] += 1
    record = {
        "held_ns": sum(holds_ns),
        "hold_sum_ns": sum(holds_ns),
        "hold_slots": tuple(slots),
        "switch_sum_ns": 0,
        "switch_slots": (0,) * SLOTS,
    }
    named = {None if who == "nobody" else int(who[1:]): ns for who, ns in credits_ns.items()}
    return RawLock(record, holding, named)


def _held(lock: RawLock, **fields: Any) -> Tally | None:
    return thread_totals(7, _record(**fields), "worker", _NOW_NS, {_COND: lock}).held


def _holds(raw: RawProcess, cond: int = _COND) -> HoldTotals | None:
    totals = process_totals(raw, _NOW_NS, _GILS, {}, sees_holds=True)
    (found,) = [gil.holds for gil in totals.gils if gil.gil.cond == cond]
    return found


def test_holds_are_none_where_they_are_not_seen() -> None:
    """
    No zero stands for what was not measured.
    """
    totals = process_totals(RawProcess(threads={7: _record()}), _NOW_NS, _GILS, {})

    assert [None] == [thread.held for thread in totals.threads]
    assert [None, None] == [gil.holds for gil in totals.gils]


def test_a_thread_that_held_nothing_has_zeros() -> None:
    """
    Where holds are seen, none is a number.
    """
    totals = process_totals(RawProcess(threads={7: _record()}), _NOW_NS, _GILS, {}, sees_holds=True)

    assert [Tally()] == [thread.held for thread in totals.threads]


def test_finished_holds_are_the_records() -> None:
    """
    Time and number as the probe has counted them.
    """
    assert Tally(50, 3) == _held(_lock(), hold_ns=50, holds=3)


def test_a_hold_in_flight_is_its_holders() -> None:
    """
    Its part in windows counts for its thread, but not as a hold, and for nobody else.
    """
    mine = Holding(tid=7, since_ns=_NOW_NS - 30, part_ns=20)
    others = Holding(tid=8, since_ns=_NOW_NS - 30, part_ns=20)
    unknown = Holding(tid=None, since_ns=_NOW_NS - 30, part_ns=20)

    assert Tally(70, 3) == _held(_lock(mine), hold_ns=50, holds=3, last_hold_began_ns=5)
    assert Tally(50, 3) == _held(_lock(others), hold_ns=50, holds=3)
    assert Tally(50, 3) == _held(_lock(unknown), hold_ns=50, holds=3)


def test_a_hold_that_ended_between_the_two_looks_counts_once() -> None:
    """
    The lock is read before the thread, whose record has it already then: the same or a later one.
    """
    holding = Holding(tid=7, since_ns=_NOW_NS - 30, part_ns=30)

    for later_ns in (0, 10):
        began_ns = _NOW_NS - 30 + later_ns
        assert Tally(31, 1) == _held(
            _lock(holding), hold_ns=31, holds=1, last_hold_began_ns=began_ns
        )


def test_credits_are_added_to_what_the_probes_saw() -> None:
    """
    To the thread's, of all locks, and no credit of another's or of nobody's.
    """
    locks = {_COND: _lock(None, t7=5, t8=70, nobody=900), _OTHER_COND: _lock(None, t7=6)}
    record = _record(hold_ns=50, holds=3)

    assert Tally(61, 3) == thread_totals(7, record, None, _NOW_NS, locks).held


def test_a_holder_without_a_record_is_listed() -> None:
    """
    A thread that has neither waited nor let go is known by what it holds.
    """
    raw = RawProcess(locks={_COND: _lock(Holding(tid=9, since_ns=_NOW_NS - 30, part_ns=20))})
    totals = process_totals(raw, _NOW_NS, _GILS, {9: "worker"}, sees_holds=True)

    (thread,) = totals.threads
    assert (9, "worker", Tally(20), 0, True) == (
        thread.tid,
        thread.role,
        thread.held,
        thread.waits,
        thread.is_alive,
    )


def test_a_thread_known_by_its_credits_only_stays_listed() -> None:
    """
    It held a lock all through a window, and does so no more: its time must not vanish.
    """
    raw = RawProcess(locks={_COND: _lock(None, t9=20, nobody=5)})

    totals = process_totals(raw, _NOW_NS, _GILS, {}, sees_holds=True)

    assert [(9, Tally(20))] == [(thread.tid, thread.held) for thread in totals.threads]


def test_a_locks_time_is_that_of_all_who_held_it() -> None:
    """
    Finished holds, credits of known and unknown threads, and the part in flight.
    """
    holding = Holding(tid=7, since_ns=_NOW_NS - 300, part_ns=200)
    raw = RawProcess(locks={_COND: _lock(holding, 10, 40, t7=3, t8=4, nobody=5)})

    holds = _holds(raw)
    assert holds is not None
    assert (262, 300) == (holds.held_ns, holds.holding_ns)
    assert (2, 50) == (holds.finished.count, holds.finished.sum_ns)
    assert EMPTY == holds.switch_latency


def test_a_lock_without_holds_of_its_own_has_none() -> None:
    """
    The probes do not know the other interpreter's lock: its holds are not seen, not zero.
    """
    assert _holds(RawProcess(locks={_COND: _lock()}), _OTHER_COND) is None


def test_a_hold_that_began_after_the_clock_was_read_lasts_nothing() -> None:
    """
    It never lasts a negative time.
    """
    raw = RawProcess(locks={_COND: _lock(Holding(tid=7, since_ns=_NOW_NS + 5, part_ns=0))})

    holds = _holds(raw)
    assert holds is not None
    assert (0, 0) == (holds.held_ns, holds.holding_ns)


def test_a_dead_thread_keeps_its_holds() -> None:
    """
    Its final totals have what it held, and say that it is dead.
    """
    record = _record(hold_ns=50, holds=3, exited_ns=_NOW_NS)
    totals = thread_totals(7, record, "worker", _NOW_NS, {_COND: _lock(None, t7=5)})

    assert (Tally(55, 3), False) == (totals.held, totals.is_alive)
