"""Who held the GIL, out of waits alone."""

from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Stack
from gilscope.model.timeline import Span
from gilscope.reports.gil.holds_by_waits import Hold, drop_requests, exact_holds, holds_by_waits
from support.recordings.gil import CRUNCHING

_KIND = Kind.CONVOY


def _wait(tid: int, began_ns: int, ended_ns: int, holder: Stack = UNKNOWN_STACK) -> Span:
    return Span(tid, 0, began_ns, ended_ns, _KIND, holder=holder)


def test_who_has_waited_holds_until_another_gets_it() -> None:
    """
    Thread 1 from 10 to 30, where thread 2 gets it; that is the last, up to the end.
    """
    assert [Hold(1, 0, 10, 30), Hold(2, 0, 30, 40)] == holds_by_waits(
        [_wait(1, 0, 10), _wait(2, 5, 30), _wait(3, 29, 50)], until_ns=40
    )


def test_where_no_wait_has_ended_nobody_is_known_to_hold() -> None:
    """
    One call that goes through all of the time has everybody wait for it.
    """
    assert [] == holds_by_waits([_wait(1, 0, 40), _wait(2, 5, 41)], until_ns=40)


def test_who_waits_again_does_not_hold() -> None:
    """
    What comes after is not known: nobody has been seen to get it.
    """
    assert [Hold(1, 0, 10, 15, is_assumed=True)] == holds_by_waits(
        [_wait(1, 0, 10), _wait(1, 15, 40)], until_ns=40
    )


def test_while_nobody_waits_it_is_assumed() -> None:
    """
    Thread 2 begins to wait at 20, until which thread 1 may have let go and come back.
    """
    assert [Hold(1, 0, 10, 20, CRUNCHING, is_assumed=True), Hold(1, 0, 20, 30, CRUNCHING)] == [
        hold
        for hold in holds_by_waits([_wait(1, 0, 10), _wait(2, 20, 30, CRUNCHING)], until_ns=31)
        if hold.tid == 1
    ]


def test_a_wait_that_nobody_was_behind_splits_nothing_before_it() -> None:
    """
    Two stretches of waiting inside one hold, and a gap between them.
    """
    waits = [_wait(1, 0, 10), _wait(2, 12, 20), _wait(3, 25, 40)]

    assert [
        (1, 10, 12, True),
        (1, 12, 20, False),
        (2, 20, 25, True),
        (2, 25, 40, False),
        (3, 40, 50, True),
    ] == [
        (hold.tid, hold.began_ns, hold.ended_ns, hold.is_assumed)
        for hold in holds_by_waits(waits, until_ns=50)
    ]


def test_locks_do_not_mix() -> None:
    """
    Each interpreter's own.
    """
    other = Span(9, 1, 0, 20, _KIND)

    assert [Hold(1, 0, 10, 15, is_assumed=True), Hold(9, 1, 20, 40, is_assumed=True)] == [
        hold
        for hold in holds_by_waits([_wait(1, 0, 10), other, _wait(1, 15, 60)], until_ns=40)
        if hold.is_assumed
    ]


def test_holds_that_were_seen_are_as_they_are() -> None:
    """
    Full mode; where a thread stood is what those say who began to wait for it.
    """
    spans = [Span(1, 0, 5, 9, None), Span(1, 0, 20, 30, None), _wait(2, 21, 30, CRUNCHING)]

    assert [Hold(1, 0, 5, 9), Hold(1, 0, 20, 30, CRUNCHING)] == exact_holds(spans)


def test_requests_come_an_interval_into_a_wait() -> None:
    """
    Another one where somebody has got the lock meanwhile, and never where the wait is shorter.
    """
    waits = [_wait(1, 0, 12), _wait(2, 10, 16), _wait(3, 14, 60), _wait(4, 30, 33)]

    assert [(1, 5), (3, 24)] == drop_requests(waits, 5)
    assert [(1, 1), (2, 11), (3, 15), (4, 31)] == drop_requests(waits, 1)
    assert [] == drop_requests(waits, 0)
