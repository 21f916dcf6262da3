"""Waits for locks and stops of the world, one by one."""

from gilscope.locks.abi import LONGEST_TYPE, SleepKind, SpanKind
from gilscope.locks.timeline import LockTimelines
from gilscope.locks.totals import RawLocks
from gilscope.model.locks import LockKind, LockSpan, LockTimeline, StopCause, StopSpan
from gilscope.model.stack import UNKNOWN_STACK
from gilscope.values import Record
from support.recordings.locks import APPEND, HOLD, MS, RELEASE, STACKS, WAIT, thread

_PID = 4711


def _span(  # noqa: PLR0913 - most have defaults
    from_ms: int,
    until_ms: int,
    kind: SpanKind = SpanKind.WAIT,
    reason: int = SleepKind.OBJECT,
    type_name: str = "",
    *,
    pid: int = _PID,
    stack: int = APPEND,
    released: int = 0,
    held: int = 0,
) -> Record:
    return {
        "began_ns": from_ms * MS,
        "ended_ns": until_ms * MS,
        "stack": stack,
        "released": released,
        "held": held,
        "tgid": pid,
        "tid": 11,
        "kind": kind,
        "reason": reason,
        "type": type_name.encode().ljust(LONGEST_TYPE, b"\0"),
    }


def _kept(
    most: int | None = None, a_second: int | None = None, for_ns: int | None = None
) -> LockTimelines:
    return LockTimelines(lambda _: STACKS, most, a_second=a_second, for_ns=for_ns)


def _timeline(
    kept: LockTimelines, raw: RawLocks | None = None, *, has_flights: bool = True
) -> LockTimeline:
    tables = RawLocks(100 * MS) if raw is None else raw
    return kept.timeline(_PID, tables, has_flights=has_flights)


def test_waits_are_what_they_are_in_the_totals() -> None:
    """
    By the object's type, and what a condition waits by is idleness; in the order of their ends.
    """
    kept = _kept()
    kept.add(_span(5, 9, reason=SleepKind.LOCK_OBJECT, type_name="_thread.lock", stack=WAIT))
    kept.add(_span(1, 4, type_name="list", released=RELEASE, held=HOLD))
    kept.add(_span(9, 10, reason=SleepKind.STOPPED, stack=0))

    timeline = _timeline(kept)
    listed = (STACKS[APPEND], STACKS[RELEASE], STACKS[HOLD])

    assert (
        LockSpan(11, LockKind.OBJECT, "list", 1 * MS, 4 * MS, *listed),
        LockSpan(11, LockKind.IDLE, None, 5 * MS, 9 * MS, STACKS[WAIT], UNKNOWN_STACK),
        LockSpan(11, LockKind.WORLD_STOP, None, 9 * MS, 10 * MS, UNKNOWN_STACK, UNKNOWN_STACK),
    ) == timeline.waits
    assert ((), 0) == (timeline.stops, timeline.dropped)


def test_parts_of_one_wait_are_one() -> None:
    """
    A mutex takes several sleeps; who had it first is told, and who has released it last.

    What another wait has interrupted stays apart, and so does another thread's.
    """
    kept = _kept()
    kept.add(_span(1, 4, released=APPEND, held=HOLD))
    kept.add({**_span(2, 4), "tid": 12})
    kept.add(_span(4, 6, released=RELEASE))
    kept.add(_span(6, 8, reason=SleepKind.STOPPED))
    kept.add(_span(8, 9))
    kept.add(_span(10, 11))

    waits = _timeline(kept).waits

    assert [(12, 2, 4), (11, 1, 6), (11, 6, 8), (11, 8, 9), (11, 10, 11)] == [
        (each.tid, each.began_ns // MS, each.ended_ns // MS) for each in waits
    ]
    assert (STACKS[RELEASE], STACKS[HOLD]) == (waits[1].released, waits[1].held)


def test_stops_have_two_parts() -> None:
    """
    Until all had stopped and from then on, for a collection or for something else.
    """
    kept = _kept()
    kept.add(_span(1, 2, SpanKind.STOPPING, 1))
    kept.add(_span(2, 5, SpanKind.STANDING, 1))
    kept.add(_span(7, 8, SpanKind.STANDING, 0, stack=RELEASE))

    timeline = _timeline(kept)

    assert () == timeline.waits
    assert (
        StopSpan(11, StopCause.COLLECTION, False, 1 * MS, 2 * MS, STACKS[APPEND]),
        StopSpan(11, StopCause.COLLECTION, True, 2 * MS, 5 * MS, STACKS[APPEND]),
        StopSpan(11, StopCause.OTHER, True, 7 * MS, 8 * MS, STACKS[RELEASE]),
    ) == timeline.stops


def test_a_wait_in_flight_ends_when_it_is_looked_at() -> None:
    """
    Unless it will not count, because a window is over before it is.
    """
    asleep = thread(asleep_ns=90 * MS, sleeps_for=0, wanted_ns=80 * MS)
    raw = RawLocks(100 * MS, {12: asleep, 13: thread()})

    assert (LockSpan(12, LockKind.OBJECT, "list", 80 * MS, 100 * MS, STACKS[APPEND]),) == _timeline(
        _kept(), raw
    ).waits
    assert () == _timeline(_kept(), raw, has_flights=False).waits


def test_what_has_no_room_is_counted() -> None:
    """
    Here and in the kernel. Processes share the room, and give it back.
    """
    kept = _kept(most=2)
    for pid, from_ms in ((_PID, 1), (5, 2), (_PID, 3), (_PID, 4)):
        kept.add(_span(from_ms, from_ms + 1, pid=pid))

    timeline = _timeline(kept, RawLocks(100 * MS, lost={"span": 7, "table_full": 1}))
    kept.forget(5)
    kept.add(_span(8, 9))
    later = _timeline(kept)

    assert ([1 * MS], 2 + 7) == ([each.began_ns for each in timeline.waits], timeline.dropped)
    assert ([1 * MS, 8 * MS], 2) == ([each.began_ns for each in later.waits], later.dropped)
    kept.forget(_PID)
    assert LockTimeline((), (), 0) == _timeline(kept)


def test_the_worst_moment_is_that_of_contention() -> None:
    """
    Idleness is none, however long; what reaches into the moment is shown, stops as well.
    """
    kept = _kept()
    kept.add(_span(0, 9000, SpanKind.WAIT, SleepKind.EVENT))
    kept.add(_span(100, 120))
    kept.add(_span(5000, 5100, released=RELEASE))
    kept.add(_span(5050, 5060, SpanKind.STANDING, 1))
    kept.add(_span(5100, 5190, reason=SleepKind.STOPPED))

    moment = kept.moment(_PID, RawLocks(9000 * MS), has_flights=True)

    assert moment is not None
    assert (4990 * MS, 5190 * MS) == (moment.began_ns, moment.ended_ns)
    assert [5000 * MS, 5100 * MS] == [each.began_ns for each in moment.waits]
    assert [5050 * MS] == [each.began_ns for each in moment.stops]
    assert () == moment.unseen
    idle = _kept()
    idle.add(_span(0, 9000, SpanKind.WAIT, SleepKind.EVENT))
    assert None is idle.moment(_PID, RawLocks(9000 * MS), has_flights=True)


def test_the_worst_moment_stays_when_there_is_no_room() -> None:
    """
    And the last spans; a second of which more was to be sent is known by their number.
    """
    kept = _kept(most=40, a_second=30)
    kept.add(_span(1000, 1100))
    for number in range(100):
        kept.add(_span(3000 + 10 * number, 3001 + 10 * number))

    moment = kept.moment(_PID, RawLocks(9000 * MS), has_flights=True)

    assert moment is not None
    assert [1000 * MS] == [each.began_ns for each in moment.waits]
    assert 1 + 10 <= len(_timeline(kept).waits) <= 40
    assert 0 == _timeline(kept).dropped


def test_the_worst_moment_is_one_since_a_time() -> None:
    """
    Of what has ended before nothing is shown, and its seconds are not counted.
    """
    kept = _kept(a_second=3)
    for at_ms in (1000, 1100, 1200, 9000):
        kept.add(_span(at_ms, at_ms + 50))

    whole = kept.moment(_PID, RawLocks(9900 * MS), has_flights=True)
    late = kept.moment(_PID, RawLocks(9900 * MS), 8000 * MS, has_flights=True)

    assert (whole is not None, late is not None) == (True, True)
    assert whole is not None
    assert late is not None
    assert (1, 0) == (whole.cut_seconds, late.cut_seconds)
    assert 1000 * MS in {each.began_ns for each in whole.waits}
    assert [9000 * MS] == [each.began_ns for each in late.waits]
    assert None is kept.moment(_PID, RawLocks(9900 * MS), 9800 * MS, has_flights=True)


def test_what_a_long_wait_was_before_does_not_count() -> None:
    """
    It is shown in the time that is asked for, and not where it began.
    """
    kept = _kept(a_second=30)
    kept.add(_span(1000, 9500))

    moment = kept.moment(_PID, RawLocks(9900 * MS), 8000 * MS, has_flights=True)

    assert moment is not None
    assert (8000 * MS, 8200 * MS) == (moment.began_ns, moment.ended_ns)
    assert [1000 * MS] == [each.began_ns for each in moment.waits]


def test_what_was_sent_since_the_tables_were_read_does_not_count() -> None:
    """
    A service goes on while a report is made: the moment ends where all other figures do.
    """
    kept = _kept(a_second=30)
    kept.add(_span(9000, 9050))
    for _ in range(5):
        kept.add(_span(9850, 9990))
        kept.add(_span(9901, 9990))

    moment = kept.moment(_PID, RawLocks(9900 * MS), has_flights=True)
    early = kept.moment(_PID, RawLocks(8000 * MS), has_flights=True)

    assert moment is not None
    assert (9700 * MS, 9900 * MS) == (moment.began_ns, moment.ended_ns)
    assert {9850 * MS} == {each.began_ns for each in moment.waits}
    assert early is None


def test_the_worst_moment_of_each_minute_stays() -> None:
    """
    A report may be of the last one alone, in which it was less bad than before.
    """
    kept = _kept(most=40, a_second=30, for_ns=600_000 * MS)
    kept.add(_span(1000, 1100))
    kept.add(_span(61_000, 61_050))
    for number in range(100):
        kept.add(_span(63_000 + 10 * number, 63_001 + 10 * number))

    late = kept.moment(_PID, RawLocks(70_000 * MS), 60_000 * MS, has_flights=True)
    whole = kept.moment(_PID, RawLocks(70_000 * MS), has_flights=True)

    assert late is not None
    assert [61_000 * MS] == [each.began_ns for each in late.waits]
    assert whole is not None
    assert [1000 * MS] == [each.began_ns for each in whole.waits]


def test_what_has_been_long_ago_makes_room_first() -> None:
    """
    However bad it was: a report of the last minutes does not show it.
    """
    kept = _kept(most=40, a_second=30, for_ns=5000 * MS)
    kept.add(_span(1000, 1100))
    for number in range(100):
        kept.add(_span(8000 + 10 * number, 8001 + 10 * number))

    assert 8000 * MS <= min(each.began_ns for each in _timeline(kept).waits)


def test_names_of_types_are_given_up_with_what_they_are_of() -> None:
    """
    A program may make new types for as long as it runs.
    """
    kept = _kept(most=40, a_second=30)
    for number in range(1000):
        kept.add(_span(10 * number, 10 * number + 1, type_name=f"T{number}"))

    assert f"T{999}" == _timeline(kept).waits[-1].type
    assert {each.type for each in _timeline(kept).waits} <= {f"T{one}" for one in range(1000)}
    # Twice the worst moment, of twenty spans, and the last ten.
    assert len(kept._types) == len(kept._type_names) <= 60  # noqa: SLF001 - nobody else sees them
    kept.add(_span(20_000, 20_001, type_name="list", pid=_PID + 1))
    kept.forget(_PID)
    assert [b"list"] == kept._type_names  # noqa: SLF001 - likewise
    assert ["list"] == [
        each.type for each in kept.timeline(_PID + 1, RawLocks(30_000 * MS), has_flights=True).waits
    ]


def test_a_wait_that_has_ended_since_is_no_more_in_flight() -> None:
    """
    The tables are read first: what the ring has of it then is the whole of it.
    """
    asleep = thread(asleep_ns=90 * MS, sleeps_for=0, wanted_ns=80 * MS)
    raw = RawLocks(100 * MS, {11: asleep})
    kept = _kept()
    kept.add(_span(20, 30))
    before = _timeline(kept, raw).waits
    kept.add(_span(80, 101))

    assert [(20, 30), (80, 100)] == [(each.began_ns // MS, each.ended_ns // MS) for each in before]
    assert [(20, 30), (80, 101)] == [
        (each.began_ns // MS, each.ended_ns // MS) for each in _timeline(kept, raw).waits
    ]


def test_where_a_thread_stood_is_known_before_a_moment_is_given_up_for_it() -> None:
    """
    A condition's wait looks like one for a lock until its place has been read.
    """
    kept = _kept(most=40, a_second=30)
    kept.add(_span(1000, 1100))
    kept.add(_span(1500, 2500, reason=SleepKind.LOCK_OBJECT, type_name="_thread.lock", stack=99))
    for number in range(50):
        kept.add(_span(3000 + 10 * number, 3001 + 10 * number))

    assert 1000 * MS in {each.began_ns for each in _timeline(kept).waits}


def test_seconds_with_more_than_was_sent_are_told() -> None:
    """
    The moment is chosen among what was sent.
    """
    kept = _kept(a_second=10)
    for number in range(10):
        kept.add(_span(3000 + number, 3001 + number))

    moment = kept.moment(_PID, RawLocks(9000 * MS, lost={"span": 4}), has_flights=True)

    assert moment is not None
    assert (1, 4) == (moment.cut_seconds, moment.dropped)
