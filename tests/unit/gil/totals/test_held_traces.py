"""By which requests the lock was kept: what is kept, what is forgotten, what a report is told."""

from typing import Any

import pytest

from gilscope.gil.abi import HeldTraceKind
from gilscope.gil.totals import held_traces as module
from gilscope.gil.totals.held_traces import HeldTraceBook, RawHeldTrace
from gilscope.model.traces import NO_HOLDS, TraceHold
from support.recordings.gil import MS

_DROP: int = HeldTraceKind.SLOW_DROP
_HOLD: int = HeldTraceKind.LONG_HOLD
_OFFSET_NS = 1_000_000 * MS


def _raw(ms: int, times: int = 1, longest_ms: int = 0, **fields: Any) -> RawHeldTrace:
    some = RawHeldTrace(ms * MS, times, (longest_ms or ms) * MS, 5 * MS, 0x0201, 0xC0)
    return some._replace(**fields)


def test_a_trace_is_told_with_its_longest() -> None:
    """
    When that ended by the clock of the host, in which span, and of which kind it was.
    """
    table = {(_DROP, "one"): _raw(30, 3, 20, route="/a"), (_HOLD, "two"): _raw(11)}
    told = HeldTraceBook().holds(table, HeldTraceKind.SLOW_DROP, _OFFSET_NS)

    ended_ns = _OFFSET_NS + 5 * MS
    one = TraceHold("one", "/a", 30 * MS, 3, 20 * MS, ended_ns, "0102000000000000", 0xC0)
    assert (30 * MS, 3, (one,), (one,)) == (told.ns, told.times, told.worst, told.recent)
    (two,) = HeldTraceBook().holds(table, HeldTraceKind.LONG_HOLD, _OFFSET_NS).worst
    assert ("two", None, 11 * MS) == (two.trace_id, two.route, two.ns)


def test_what_has_left_the_table_adds_up_with_what_is_in_it() -> None:
    """
    The longest is that of either, and so is the route.
    """
    book = HeldTraceBook()
    book.keep({(_DROP, "one"): _raw(30)})
    book.keep({(_DROP, "one"): _raw(40, longest_span=0x07, route="/a")})
    told = book.holds({(_DROP, "one"): _raw(10)}, HeldTraceKind.SLOW_DROP, 0)
    (one,) = told.worst

    assert (80 * MS, 3) == (told.ns, told.times) == (one.ns, one.times)
    assert (40 * MS, "0700000000000000", "/a") == (one.longest_ns, one.span_id, one.route)


def test_a_drop_that_was_not_slow_after_all_is_told_nowhere() -> None:
    """
    Its entry was made before it was known.
    """
    book = HeldTraceBook()
    book.keep({(_DROP, "one"): _raw(0, 0)})

    assert NO_HOLDS == book.holds({(_DROP, "two"): _raw(0, 0)}, HeldTraceKind.SLOW_DROP, 0)


def test_of_many_the_worst_are_remembered_and_all_are_summed_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    One that comes back after it was forgotten counts as before.
    """
    monkeypatch.setattr(module, "_MOST_OPEN", 2)
    monkeypatch.setattr(module, "_MOST_WORST", 2)
    book = HeldTraceBook()
    for number in range(1, 7):
        book.keep({(_DROP, str(number)): _raw(10 * number), (_HOLD, "other"): _raw(10)})
    book.keep({(_DROP, "1"): _raw(10)})
    told = book.holds({}, HeldTraceKind.SLOW_DROP, 0)

    assert (220 * MS, 7) == (told.ns, told.times)
    assert [("6", 60 * MS), ("5", 50 * MS)] == [(each.trace_id, each.ns) for each in told.worst]
    assert (60 * MS, 6) == (
        book.holds({}, HeldTraceKind.LONG_HOLD, 0).ns,
        book.holds({}, HeldTraceKind.LONG_HOLD, 0).times,
    )


def test_for_each_bucket_the_last_is_an_example() -> None:
    """
    Of each lock by itself.
    """
    table = {
        (_HOLD, "first"): _raw(20, longest_ended_ns=1),
        (_HOLD, "last"): _raw(21, longest_ended_ns=2),
        (_HOLD, "longer"): _raw(90, longest_ended_ns=3),
        (_HOLD, "of another"): _raw(20, longest_ended_ns=4, longest_cond=0xD0),
    }
    recent = HeldTraceBook().holds(table, HeldTraceKind.LONG_HOLD, 0).recent

    assert ["last", "longer", "of another"] == [each.trace_id for each in recent]
