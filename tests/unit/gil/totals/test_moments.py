"""What of many waits the worst moment is made of."""

from gilscope.gil.abi import SPAN_IS_HOLD
from gilscope.gil.totals.moments import SentSpan, of_moment, worst_began_ns, worth_keeping
from gilscope.series.moments.worst_window import MOMENT_NS


def _record(began_ns: int, ended_ns: int, *, cond: int = 1, kind: int = 3) -> SentSpan:
    return SentSpan(cond, began_ns, ended_ns, waiter=0, holder=0, tid=1, kind=kind)


def test_holds_do_not_make_a_moment() -> None:
    """
    Nobody waits in them.
    """
    hold = _record(0, 10 * MOMENT_NS, kind=SPAN_IS_HOLD)

    assert worst_began_ns([hold]) is None
    assert 3 * MOMENT_NS == worst_began_ns([hold, _record(3 * MOMENT_NS, 5 * MOMENT_NS)])


def test_the_last_wait_before_is_kept_for_each_lock() -> None:
    """
    Its thread holds the lock when the moment begins.
    """
    before, last, other = _record(0, 10), _record(5, 20), _record(0, 7, cond=2)
    inside, later = _record(90, 110), _record(200, 210)
    hold = _record(30, 40, kind=SPAN_IS_HOLD)

    assert [last, other, inside] == of_moment([before, last, other, hold, inside, later], 100, 200)


def test_what_is_worth_keeping_is_bounded() -> None:
    """
    The worst moment as a whole and the last, each once.
    """
    worst = [_record(0, MOMENT_NS), _record(1, MOMENT_NS)]
    rest = [_record(MOMENT_NS * number, MOMENT_NS * number + 5) for number in range(5, 30)]

    assert [*worst, *rest[-2:]] == worth_keeping([*worst, *rest], 2)
    assert worst == worth_keeping(worst, 2)
    holds = [_record(number, number + 1, kind=SPAN_IS_HOLD) for number in range(9)]
    assert holds[-2:] == worth_keeping(holds, 2)


def test_the_worst_of_each_part_is_worth_keeping() -> None:
    """
    Where a report may be of the last part alone.
    """
    first = [_record(0, MOMENT_NS), _record(1, MOMENT_NS)]
    second = [_record(100 * MOMENT_NS, 100 * MOMENT_NS + 9)]
    last = [_record(105 * MOMENT_NS, 105 * MOMENT_NS + 5)]

    assert [*first, *last] == worth_keeping([*first, *second, *last], 1)
    assert [*first, *second, *last] == worth_keeping(
        [*first, *second, *last], 1, part_ns=50 * MOMENT_NS
    )


def test_what_lies_outside_of_a_time_makes_no_moment() -> None:
    """
    A wait may be longer than what a report is about.
    """
    long = _record(0, 90 * MOMENT_NS)

    assert 50 * MOMENT_NS == worst_began_ns([long], 50 * MOMENT_NS, 80 * MOMENT_NS)
    assert None is worst_began_ns([long], 90 * MOMENT_NS, 95 * MOMENT_NS)
