"""Sums by trace: what is kept, what is forgotten, and what a report is told."""

from typing import Any

import pytest

from gilscope.gil.totals import traces as module
from gilscope.gil.totals.traces import RawTrace, TraceBook, trace_id
from gilscope.model.kinds import Cause
from gilscope.model.stack import Stack
from gilscope.model.traces import Traces
from support.recordings.gil import CRUNCHING, MS, SERVING

_STACKS = {20: CRUNCHING, 21: SERVING}
_OFFSET_NS = 1_000_000 * MS


def _raw(wait_ms: int, waits: int = 1, longest_ms: int = 0, **fields: Any) -> RawTrace:
    longest_ns = (longest_ms or wait_ms) * MS
    some = RawTrace(wait_ms * MS, waits, longest_ns, 5 * MS, 0x0201, 20, 0xC0, 0)
    return some._replace(**fields)


def _stack(number: int) -> Stack:
    return _STACKS[number]


def _told(book: TraceBook, **now: RawTrace) -> Traces:
    return book.traces(now, _stack, _OFFSET_NS)


def test_ids_are_written_in_the_order_of_their_bytes() -> None:
    """
    As the program knows them.
    """
    assert "0100000000000000ff00000000000002" == trace_id(1, 0x02000000000000FF)


def test_a_trace_is_told_with_its_longest_wait() -> None:
    """
    When that ended by the clock of the host, in which span, and behind which stack.
    """
    told = _told(TraceBook(), one=_raw(30, 3, 20))
    (only,) = told.worst

    assert (1, 30 * MS, 3) == (told.number, told.wait_ns, told.waits)
    assert ("one", 30 * MS, 3, 20 * MS) == (
        only.trace_id,
        only.wait_ns,
        only.waits,
        only.longest_ns,
    )
    assert (_OFFSET_NS + 5 * MS, "0102000000000000") == (only.ended_unix_ns, only.span_id)
    assert (CRUNCHING, Cause.BLOCKING_CALL, 0xC0) == (only.holder, only.cause, only.cond)


@pytest.mark.parametrize(("later_ms", "holder"), [(10, CRUNCHING), (30, SERVING)])
def test_what_has_left_the_table_adds_up_with_what_is_in_it(later_ms: int, holder: Stack) -> None:
    """
    The longest wait is that of either.
    """
    book = TraceBook()
    book.keep({"one": _raw(20)}, _stack)
    told = _told(book, one=_raw(later_ms, longest_holder=21), two=_raw(1))

    assert [("one", (20 + later_ms) * MS, 2), ("two", MS, 1)] == [
        (each.trace_id, each.wait_ns, each.waits) for each in told.worst
    ]
    assert holder == told.worst[0].holder
    assert (2, (21 + later_ms) * MS, 3) == (told.number, told.wait_ns, told.waits)


def test_memory_has_bounds_and_sums_never_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of those that have not waited for long the worst are remembered, and the number of all.
    """
    monkeypatch.setattr(module, "_MOST_OPEN", 2)
    monkeypatch.setattr(module, "_MOST_WORST", 2)
    book = TraceBook()
    for name, wait_ms in {"a": 5, "b": 1, "c": 7, "d": 2, "e": 3}.items():
        book.keep({name: _raw(wait_ms)}, _stack)
    told = _told(book, f=_raw(4))

    assert (6, 22 * MS, 6) == (told.number, told.wait_ns, told.waits)
    assert ["c", "a"] == [each.trace_id for each in told.worst]


def test_the_last_one_of_each_size_is_told_as_an_example() -> None:
    """
    By powers of two, and apart by lock and cause; in the order in which they ended.
    """
    told = _told(
        TraceBook(),
        early=_raw(10, longest_ended_ns=1),
        late=_raw(11, longest_ended_ns=3),
        long=_raw(100, longest_ended_ns=2),
        other=_raw(10, longest_ended_ns=4, longest_cause=1),
    )

    assert ["long", "late", "other"] == [each.trace_id for each in told.recent]
