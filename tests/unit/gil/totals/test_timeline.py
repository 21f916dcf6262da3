"""Waits and holds one by one."""

from typing import Any

from gilscope.gil.abi import Loss
from gilscope.gil.totals.raw import Holding, RawLock, RawProcess
from gilscope.gil.totals.timeline import Timelines
from gilscope.model.gil import ENDED_INTERPRETER, Gil
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Stack, StackState
from gilscope.model.timeline import Span, Timeline
from gilscope.values import Record
from support.recordings.gil import CRUNCHING, SERVING

_PID = 4711
_COND = 4096
_HOLD = 4
_MS = 1_000_000
_GILS = {_COND: Gil(_COND, 0), 2 * _COND: Gil(2 * _COND, 3)}
_STACKS = {5: SERVING, 6: CRUNCHING}


def _sent(tid: int, began_ns: int, ended_ns: int, kind: int, **fields: int) -> dict[str, int]:
    """Return a record as the ring yields it."""
    record = {
        "cond": _COND,
        "began_ns": began_ns,
        "ended_ns": ended_ns,
        "waiter": 0,
        "holder": 0,
        "tgid": _PID,
        "tid": tid,
        "kind": kind,
        "away_ns": 0,
    }
    return record | fields


def _thread(**fields: Any) -> Record:
    record: dict[str, Any] = {
        "cond": _COND,
        "wait_ns": (0, 0, 0, 0),
        "waits": (0, 0, 0, 0),
        "wait_started_ns": 0,
        "yield_started_ns": 0,
        "forced_drop_ns": 0,
        "interval_ns": 5 * _MS,
        "cause": 0,
        "drop_requests": 0,
        "failed_since_ns": 0,
        "failed_wakeup_wait_ns": 0,
        "failed_wakeups": 0,
        "exited_ns": 0,
    }
    return record | fields


def _timeline(timelines: Timelines, pid: int = _PID) -> Timeline:
    return timelines.timeline(pid, _GILS, lambda number: _STACKS.get(number, UNKNOWN_STACK))


def test_spans_are_what_the_probes_sent() -> None:
    """
    With the kind by its number, the lock's interpreter and both stacks, in the order of their ends.
    """
    timelines = Timelines()
    timelines.add(_sent(1, 10, 40, 3, waiter=5, holder=6))
    timelines.add(_sent(2, 20, 30, _HOLD, cond=2 * _COND))
    timelines.add(_sent(3, 20, 20, 1, cond=1))

    assert Timeline(
        (
            Span(3, ENDED_INTERPRETER, 20, 20, Kind.PREEMPTION),
            Span(2, 3, 20, 30, None),
            Span(1, 0, 10, 40, Kind.CONVOY, SERVING, CRUNCHING),
        ),
        dropped=0,
    ) == _timeline(timelines)


def test_the_moment_is_when_most_was_waited_for() -> None:
    """
    200 ms from the first of two waits that overlap, with what tells who held the lock before.
    """
    timelines = Timelines(a_second=4000)
    earlier, before = _sent(1, 0, 10, 3), _sent(2, 20, 30, 3)
    first, other = _sent(1, 1000 * _MS, 1150 * _MS, 3), _sent(2, 1100 * _MS, 1190 * _MS, 3)
    for record in (earlier, before, first, other, _sent(3, 2000 * _MS, 2100 * _MS, 3)):
        timelines.add(record)
    moment = timelines.moment(_PID, _GILS, lambda _: UNKNOWN_STACK)

    assert moment is not None
    assert (990 * _MS, 1190 * _MS, 5, False, ()) == (
        moment.began_ns,
        moment.ended_ns,
        moment.chosen_among,
        moment.has_holds,
        moment.unseen,
    )
    assert [20, 1000 * _MS, 1100 * _MS] == [span.began_ns for span in moment.spans]


def test_a_moment_ends_where_the_recording_does() -> None:
    """
    A wait in flight counts up to there.
    """
    timelines = Timelines(a_second=4000)
    thread = _thread(wait_started_ns=70 * _MS, cause=0)
    timelines.note(_PID, RawProcess(threads={1: thread}), 100 * _MS)

    moment = timelines.moment(_PID, _GILS, lambda _: UNKNOWN_STACK)

    assert moment is not None
    assert (70 * _MS, 100 * _MS) == (moment.began_ns, moment.ended_ns)
    assert [(70 * _MS, 100 * _MS)] == [(span.began_ns, span.ended_ns) for span in moment.spans]


def test_what_was_sent_after_the_last_look_makes_no_moment() -> None:
    """
    What else is told of the process does not have it yet.
    """
    timelines = Timelines(a_second=500)
    timelines.add(_sent(1, 10 * _MS, 20 * _MS, Kind.CONVOY.number))
    timelines.note(_PID, RawProcess(), 50 * _MS)
    for tid in range(2, 9):
        timelines.add(_sent(tid, 60 * _MS, 90 * _MS, Kind.CONVOY.number))

    moment = timelines.moment(_PID, _GILS, lambda _: UNKNOWN_STACK)

    assert moment is not None
    assert (10 * _MS, 50 * _MS) == (moment.began_ns, moment.ended_ns)
    assert [1] == [span.tid for span in moment.spans]


def test_there_is_no_moment_without_waits() -> None:
    """
    Holds alone do not make one.
    """
    timelines = Timelines(a_second=4000)
    timelines.add(_sent(1, 0, 10 * _MS, _HOLD))

    assert timelines.moment(_PID, _GILS, lambda _: UNKNOWN_STACK) is None


def test_the_moment_since_a_time() -> None:
    """
    What ended before is not in it, and not among what it is chosen from.
    """
    timelines = Timelines(a_second=4000)
    for record in (_sent(1, 0, 90 * _MS, 3), _sent(2, 1000 * _MS, 1010 * _MS, 3)):
        timelines.add(record)
    moment = timelines.moment(_PID, _GILS, lambda _: UNKNOWN_STACK, 100 * _MS)

    assert moment is not None
    assert (1000 * _MS, 1) == (moment.began_ns, moment.chosen_among)
    assert timelines.moment(_PID, _GILS, lambda _: UNKNOWN_STACK, 2000 * _MS) is None


def test_what_is_old_makes_room_first() -> None:
    """
    However bad it was: the report is about the last minutes.
    """
    timelines = Timelines(most=40, a_second=4000, for_ns=1000 * _MS)
    timelines.add(_sent(1, 0, 90 * _MS, 3))
    for number in range(60):
        began_ns = (2000 + 10 * number) * _MS
        timelines.add(_sent(2, began_ns, began_ns + _MS, 3))
    moment = timelines.moment(_PID, _GILS, lambda _: UNKNOWN_STACK)

    assert moment is not None
    assert moment.began_ns >= 2000 * _MS


def test_a_process_that_has_waited_long_ago_only_has_no_moment() -> None:
    """
    Nothing of it is left when others need the room, again and again.
    """
    timelines = Timelines(most=40, a_second=4000, for_ns=1000 * _MS)
    timelines.add({**_sent(1, 0, 90 * _MS, 3), "tgid": _PID + 1})
    for number in range(200):
        began_ns = (2000 + 10 * number) * _MS
        timelines.add(_sent(2, began_ns, began_ns + _MS, 3))

    assert timelines.moment(_PID + 1, _GILS, lambda _: UNKNOWN_STACK) is None
    assert timelines.moment(_PID, _GILS, lambda _: UNKNOWN_STACK) is not None


def test_the_worst_moment_is_kept_when_there_is_no_more_room() -> None:
    """
    Also when ten times as many waits come later; the last of these are kept too.
    """
    timelines = Timelines(most=40, a_second=4000)
    for number in range(3):
        timelines.add(_sent(number, 5 * _MS, 155 * _MS, 3))
    for number in range(400):
        timelines.add(_sent(9, 1000 * _MS * number, 1000 * _MS * number + 10, 3))

    moment = timelines.moment(_PID, _GILS, lambda _: UNKNOWN_STACK)

    assert moment is not None
    assert {0, 1, 2} <= {span.tid for span in moment.spans}
    assert 403 == moment.chosen_among
    assert 40 >= len(_timeline(timelines).spans)
    assert 399_000 * _MS == _timeline(timelines).spans[-1].began_ns


def test_a_stack_is_asked_for_once() -> None:
    """
    What the same code does a million times is put into words once.
    """
    asked: list[int] = []

    def stack_of(number: int) -> Stack:
        asked.append(number)
        return Stack((), StackState.NO_PYTHON)

    timelines = Timelines()
    for began_ns in range(3):
        timelines.add(_sent(1, began_ns, began_ns, 0, waiter=7, holder=7))
    timelines.timeline(_PID, _GILS, stack_of)

    assert [7] == asked


def test_processes_are_kept_apart() -> None:
    """
    One that is forgotten leaves its room to the other.
    """
    timelines = Timelines(most=2)
    timelines.add(_sent(1, 1, 2, 0))
    timelines.add(_sent(2, 3, 4, 0, tgid=9))
    timelines.add(_sent(2, 5, 6, 0, tgid=9))
    assert [1, 2] == [_timeline(timelines, pid).spans[0].tid for pid in (_PID, 9)]
    assert [0, 1] == [_timeline(timelines, pid).dropped for pid in (_PID, 9)]

    timelines.forget(_PID)
    timelines.add(_sent(2, 7, 8, 0, tgid=9))

    assert Timeline((), 0) == _timeline(timelines)
    assert [3, 7] == [span.began_ns for span in _timeline(timelines, 9).spans]


def test_what_is_missing_is_counted() -> None:
    """
    What found no room here, and what found none in the ring, together.
    """
    timelines = Timelines(most=1)
    for began_ns in range(3):
        timelines.add(_sent(1, began_ns, began_ns + 1, 0))
    timelines.note(_PID, RawProcess(lost={Loss.SPAN: 40, Loss.NOTICE: 1}), 100)

    assert [0] == [span.began_ns for span in _timeline(timelines).spans]
    assert 42 == _timeline(timelines).dropped


def test_wait_in_flight_is_drawn_up_to_the_end() -> None:
    """
    With the kind that it has by then, whatever the thread has waited before.
    """
    now_ns = 100 * _MS
    timelines = Timelines()
    threads: dict[int, Record] = {
        1: _thread(wait_started_ns=now_ns - 5 * _MS, wait_ns=(9, 9, 9, 9)),
        2: _thread(wait_started_ns=now_ns - 5 * _MS + 1),
        3: _thread(forced_drop_ns=now_ns - 7, cause=2),
        4: _thread(wait_ns=(1, 2, 3, 4)),
        # Outside of a window of waits: it will not be sent either.
        5: _thread(left_out=1, left_out_since_ns=now_ns - 7, left_out_ns=now_ns - 7),
    }
    timelines.note(_PID, RawProcess(threads=threads), now_ns)

    assert [
        (1, 95 * _MS, now_ns, Kind.CONVOY),
        (2, 95 * _MS + 1, now_ns, Kind.BLOCKING_CALL),
        (3, now_ns - 7, now_ns, Kind.PREEMPTION),
    ] == [
        (span.tid, span.began_ns, span.ended_ns, span.kind) for span in _timeline(timelines).spans
    ]


def test_hold_in_flight_is_drawn_as_far_as_it_counts() -> None:
    """
    That may be less than until now; whose cannot be told is not drawn.
    """
    locks = {
        _COND: RawLock({}, Holding(7, since_ns=10, part_ns=5), {}),
        2 * _COND: RawLock({}, Holding(None, since_ns=10, part_ns=5), {}),
        3 * _COND: RawLock({}, None, {}),
    }
    timelines = Timelines()
    timelines.note(_PID, RawProcess(locks=locks), 100)

    assert (Span(7, 0, 10, 15, None),) == _timeline(timelines).spans


def test_what_ends_while_somebody_asks_is_one_span() -> None:
    """
    It was seen going on, and is in the ring by the time that this is read.
    """
    locks = {_COND: RawLock({}, Holding(1, since_ns=10, part_ns=5), {})}
    threads: dict[int, Record] = {1: _thread(wait_started_ns=10), 2: _thread(wait_started_ns=10)}
    timelines = Timelines()
    timelines.note(_PID, RawProcess(threads=threads, locks=locks), 20)
    timelines.add(_sent(1, 10, 21, 0))
    timelines.add(_sent(1, 10, 22, _HOLD))

    assert [(2, 20, False), (1, 21, False), (1, 22, True)] == [
        (span.tid, span.ended_ns, span.kind is None) for span in _timeline(timelines).spans
    ]
