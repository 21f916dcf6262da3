"""From the tables of the kernel to what threads have waited for."""

from gilscope.locks.abi import SleepKind
from gilscope.locks.totals import RawLocks, added_up, threads_of
from gilscope.model.locks import LockKind, LockThread
from gilscope.model.stack import UNKNOWN_STACK
from support.recordings.locks import APPEND, HOLD, MS, RELEASE, STACKS, WAIT, raw, thread, wait

_NOW_NS = 1_000 * MS


def _only(tables: RawLocks) -> LockThread:
    (found,) = threads_of(tables, STACKS)
    return found


def _kind(kind: SleepKind, type_name: str = "", stack: int = APPEND) -> LockKind:
    tables = RawLocks(_NOW_NS, {11: thread()}, [wait(11, kind, type_name, stack=stack)])
    (found,) = _only(tables).waits
    return found.kind


def test_threads_that_lost_the_most_come_first() -> None:
    """
    What a thread was idle is no loss, however long.
    """
    first, second = threads_of(raw(), STACKS)

    assert (11, "first", 30 * MS, 0) == (first.tid, first.name, first.contended_ns, first.idle_ns)
    assert (12, 20 * MS, 1000 * MS) == (second.tid, second.contended_ns, second.idle_ns)
    lost, spun = first.waits
    assert (LockKind.OBJECT, "list", STACKS[APPEND]) == (lost.kind, lost.type, lost.stack)
    assert (24 * MS, 12 * MS, 2, 2) == (lost.wait_ns, lost.slept_ns, lost.waits, lost.sleeps)
    assert (STACKS[RELEASE], UNKNOWN_STACK) == (lost.released, spun.released)
    assert (STACKS[HOLD], STACKS[HOLD]) == (lost.held, spun.held)
    assert {UNKNOWN_STACK} == {each.held for each in second.waits}


def test_a_lock_is_known_by_the_type_of_its_object() -> None:
    """
    What has another type is another lock, with that type.
    """
    kinds = [
        _kind(SleepKind.LOCK_OBJECT, name)
        for name in ("_thread.lock", "_thread.RLock", "blosc.Context")
    ]

    assert [LockKind.LOCK, LockKind.RLOCK, LockKind.OTHER] == kinds


def test_a_lock_of_the_interpreter_is_known_by_its_name() -> None:
    """
    Not all of them have one.
    """
    waits = [wait(11, SleepKind.INTERPRETER, name) for name in ("types", "")]

    found = _only(RawLocks(_NOW_NS, {11: thread()}, waits)).waits

    assert [(LockKind.INTERPRETER, "types"), (LockKind.INTERPRETER, None)] == sorted(
        ((each.kind, each.type) for each in found), key=lambda each: each[1] is None
    )


def test_who_waits_for_a_condition_is_idle() -> None:
    """
    It waits by a lock of its own; an RLock in the same place is the condition's, and contended.
    """
    assert LockKind.IDLE is _kind(SleepKind.LOCK_OBJECT, "_thread.lock", WAIT)
    assert LockKind.IDLE is _kind(SleepKind.SEMAPHORE, "", WAIT)
    assert LockKind.RLOCK is _kind(SleepKind.LOCK_OBJECT, "_thread.RLock", WAIT)
    assert LockKind.OBJECT is _kind(SleepKind.OBJECT, "dict", WAIT)


def test_every_kind_of_sleep_has_a_kind_of_wait() -> None:
    """
    Only events are no contention.
    """
    kinds = {kind: _kind(kind, "list") for kind in SleepKind}

    assert set(SleepKind) == set(kinds)
    assert [SleepKind.EVENT] == [sleep for sleep, kind in kinds.items() if not kind.is_contention]


def test_a_wait_in_flight_counts_until_now() -> None:
    """
    From wanting the mutex, less what the thread has waited for in between.
    """
    asleep = thread(
        wanted_ns=_NOW_NS - 10 * MS,
        asleep_ns=_NOW_NS - 6 * MS,
        counted_then_ns=50 * MS,
        counted_ns=53 * MS,
        held=HOLD,
    )
    (found,) = _only(RawLocks(_NOW_NS, {11: asleep})).waits

    assert (LockKind.OBJECT, "list", STACKS[HOLD]) == (found.kind, found.type, found.held)
    assert (7 * MS, 6 * MS, 1, 1) == (found.wait_ns, found.slept_ns, found.waits, found.sleeps)


def test_what_is_in_flight_may_be_left_out() -> None:
    """
    As where a window may end without it.
    """
    asleep = thread(wanted_ns=_NOW_NS - 10 * MS, asleep_ns=_NOW_NS - 6 * MS)

    assert () == threads_of(RawLocks(_NOW_NS, {11: asleep}), STACKS, has_flights=False)


def test_what_dead_threads_have_waited_for_is_added_up() -> None:
    """
    What differs by the thread alone is one entry, of a thread with the number 0.
    """
    waits = [
        wait(11, SleepKind.OBJECT, "list", wait_ms=24),
        wait(12, SleepKind.OBJECT, "list", wait_ms=6, waits=3),
        wait(12, SleepKind.OBJECT, "dict"),
    ]
    of_list, of_dict = added_up(added_up(waits))

    assert [0, 0] == [of_list[0]["tid"], of_dict[0]["tid"]]
    assert {
        "wait_ns": 30 * MS,
        "slept_ns": 15 * MS,
        "waits": 5,
        "sleeps": 5,
        "longest_ns": 24 * MS,
    } == of_list[1]
    assert wait(0, SleepKind.OBJECT, "dict") == of_dict


def test_a_further_sleep_is_not_another_wait() -> None:
    """
    A mutex may take several; what was counted of the wait is not counted again.
    """
    asleep = thread(
        wanted_ns=_NOW_NS - 10 * MS,
        asleep_ns=_NOW_NS - 1 * MS,
        counted_ns=8 * MS,
        is_counted=1,
    )
    tables = RawLocks(_NOW_NS, {11: asleep}, [wait(11, SleepKind.OBJECT, "list", wait_ms=8)])
    (found,) = _only(tables).waits

    assert (10 * MS, 2, 3) == (found.wait_ns, found.waits, found.sleeps)


def test_what_else_is_slept_for_counts_from_the_sleep_on() -> None:
    """
    A thread may want a mutex and sleep for something else.
    """
    wanted_ns, asleep_ns = _NOW_NS - 10 * MS, _NOW_NS - 4 * MS
    asleep = thread(wanted_ns=wanted_ns, asleep_ns=asleep_ns, sleeps_for=1, held=HOLD)
    (found,) = _only(RawLocks(_NOW_NS, {11: asleep})).waits

    assert (LockKind.IDLE, None, 4 * MS) == (found.kind, found.type, found.wait_ns)
    assert UNKNOWN_STACK == found.held


def test_a_place_that_is_not_known_is_said_to_be_unknown() -> None:
    """
    The time counts all the same.
    """
    tables = RawLocks(_NOW_NS, {}, [wait(11, SleepKind.INTERPRETER, stack=0)])
    found = _only(tables)

    assert (UNKNOWN_STACK, 10 * MS) == (found.waits[0].stack, found.contended_ns)


def test_a_long_name_of_a_type_is_cut() -> None:
    """
    And shows that it is.
    """
    tables = RawLocks(_NOW_NS, {}, [wait(11, SleepKind.OBJECT, "a" * 63)])

    assert "a" * 63 + "..." == _only(tables).waits[0].type
