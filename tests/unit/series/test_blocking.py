"""The books of who kept whom waiting, over several scrapes and processes."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from gilscope.model.application import Application
from gilscope.model.gil import Edge, GilObservation, HeldUp, SlowDrop, Tally
from gilscope.model.kinds import Kind
from gilscope.model.moment.hold_state import HoldState, State
from gilscope.model.stack import UNKNOWN_STACK, Stack
from gilscope.series.blocking import BlockingSeries
from gilscope.series.by_name.owners import process_itself
from gilscope.series.lately import RecentHolder, RecentPair, SlowHolder
from support.recordings.gil import (
    CRUNCHING,
    MATCHING,
    MS,
    PROCESS,
    SERVING,
    held_up_of,
    observation,
    stack,
    with_edges,
)

_S = 1000 * MS
_OWNER = process_itself(PROCESS)
_OTHER = process_itself(replace(PROCESS, pid=1))
_HANDLE, _CRUNCH, _SCAN = (
    "handle (app.py:13)",
    "crunch (app.py:4)",
    "Pattern.scan <café> (match.py:27)",
)
_CONVOY = Edge(Kind.CONVOY, SERVING, CRUNCHING, Tally(40 * MS, 4))
_SLOW = SlowDrop(MATCHING, Tally(260 * MS, 12), longest_ns=41 * MS)


def _seen(
    at_ns: int, edges: Iterable[Edge] = (), slow_drops: Iterable[SlowDrop] = (), *, pid: int = 4711
) -> GilObservation:
    seen = observation()
    found = tuple(edges)
    totals = replace(
        seen.totals,
        at_ns=at_ns,
        edges=found,
        slow_drops=tuple(slow_drops),
        held_up=held_up_of(found),
    )
    return replace(seen, process=replace(PROCESS, pid=pid), totals=totals)


def _lost(edge: Edge, ns: int, count: int = 0) -> Edge:
    return replace(edge, lost=Tally(ns, count))


def _pairs(book: BlockingSeries, seen: GilObservation) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return what the series of the process show that have shown or show anything."""
    (blame,) = book.series([seen]).values()
    return {labels: (ns, count) for labels, ns, count in blame.pairs if labels[0] != "other" or ns}


def test_pair_is_told_by_both_sites_and_the_kind() -> None:
    """
    The second scrape has what came after the first; numbers are stretches.
    """
    book = BlockingSeries()
    first = _pairs(book, _seen(1, [_CONVOY]))
    second = _pairs(book, _seen(2, [_lost(_CONVOY, 65 * MS, 6)]))

    convoy = (_HANDLE, _CRUNCH, "GIL_CONVOY")
    others = ("other", "other", "GIL_CONVOY")
    assert {others: (40 * MS, 4), convoy: (0, 0)} == first
    assert {others: (40 * MS, 4), convoy: (25 * MS, 2)} == second


def test_series_together_are_what_was_lost() -> None:
    """
    Also where an end is unknown or ran no Python.
    """
    book = BlockingSeries(pairs=2)
    edges = with_edges().observation.totals.edges
    for grown in (1, 2, 3):
        lost = [_lost(edge, edge.lost.ns * grown, edge.lost.count * grown) for edge in edges]
        blame = book.series([_seen(grown, lost)])[_OWNER]

        assert 1940 * MS * grown == sum(ns for _, ns, _ in blame.pairs)
        assert 260 * grown == sum(count for _, _, count in blame.pairs)


def test_unknown_ends_are_called_so() -> None:
    """
    In the words of the reports.
    """
    unknown = Edge(Kind.UNKNOWN, UNKNOWN_STACK, UNKNOWN_STACK, Tally(50 * MS, 5))

    assert ("unknown", "unknown", "GIL_UNKNOWN") in _pairs(BlockingSeries(), _seen(1, [unknown]))


def test_holders_are_told_by_the_application() -> None:
    """
    All that it called is its loss; where nothing is the application's, the innermost place is told.
    """
    library = ("dumps", "/usr/lib/python3.11/json/__init__.py", 1, 9)
    view, other = ("view", "/srv/app.py", 20, 24), ("encode", "/usr/lib/python3.11/base64.py", 3, 4)
    edges = [
        Edge(Kind.CONVOY, SERVING, stack(library, view), Tally(40 * MS, 2)),
        Edge(Kind.CONVOY, SERVING, stack(other, library, view), Tally(30 * MS, 1)),
        Edge(Kind.CONVOY, SERVING, stack(library), Tally(20 * MS, 1)),
        Edge(Kind.PREEMPTION, SERVING, stack(view), Tally(10 * MS, 1)),
    ]

    grown = [_lost(edge, 2 * edge.lost.ns, 2 * edge.lost.count) for edge in edges]
    by_rule, said = BlockingSeries(), BlockingSeries(application=Application(packages=("json",)))
    for book in (by_rule, said):
        book.series([_seen(1, edges)])
    ruled, chosen = (book.series([_seen(2, grown)])[_OWNER].holders for book in (by_rule, said))

    # What was lost before they had series of their own is under other.
    assert {
        (("view (app.py:24)", "true", "GIL_CONVOY", "python"), 70 * MS),
        (("view (app.py:24)", "true", "GIL_PREEMPTION", "python"), 10 * MS),
        (("dumps (json/__init__.py:9)", "false", "GIL_CONVOY", "python"), 20 * MS),
    } == {each[:2] for each in ruled if each[0][0] != "other"}
    assert 200 * MS == sum(ns for _, ns, _ in ruled)
    assert {
        (("dumps (json/__init__.py:9)", "true", "GIL_CONVOY", "python"), 90 * MS),
        (("view (app.py:24)", "false", "GIL_PREEMPTION", "python"), 10 * MS),
    } == {each[:2] for each in chosen if each[0][0] != "other"}


def test_states_of_a_holder_have_series_of_their_own() -> None:
    """
    All of them are what was lost to it.
    """
    book = BlockingSeries()
    state = HoldState(State.GC, "generation 2")
    first = _seen(1, [_CONVOY])
    book.series([first])
    held_up = (*first.totals.held_up, HeldUp(CRUNCHING, Kind.CONVOY, state, 30 * MS))
    totals = replace(first.totals, at_ns=2, held_up=held_up)
    holders = book.series([replace(first, totals=totals)])[_OWNER].holders

    assert (_CRUNCH, "true", "GIL_CONVOY", "gc") in {labels for labels, _, _ in holders}
    assert 70 * MS == sum(ns for _, ns, _ in holders)


def test_slow_drops_have_their_own_slots() -> None:
    """
    By holder alone.
    """
    book = BlockingSeries(pairs=1)
    book.series([_seen(1, [_CONVOY], [_SLOW])])
    slower = replace(_SLOW, drop_latency=Tally(300 * MS, 13))

    blame = book.series([_seen(2, [_CONVOY], [slower])])[_OWNER]

    assert ((("other",), 260 * MS, 12), ((_SCAN,), 40 * MS, 1)) == blame.slow_holders


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("a\x00b\x1b[31m\u202e\nc", "ab[31m c (app.py:4)"),
        ("half \udc80 a pair", "half  a pair (app.py:4)"),
        ("f" * 1000, f"{'f' * 119}…{'f' * 69} (app.py:4)"),
    ],
)
def test_names_from_the_program_cannot_do_harm(function: str, expected: str) -> None:
    """
    No control characters, nothing that cannot be encoded, and no more than 200 characters.
    """
    hostile = stack((function, "/srv/app.py", 1, 4))
    edge = Edge(Kind.CONVOY, hostile, hostile, Tally(40 * MS))

    assert (expected, expected, "GIL_CONVOY") in _pairs(BlockingSeries(), _seen(1, [edge]))
    assert len(expected) <= 200


def test_stacks_may_be_made_anew_each_time() -> None:
    """
    It costs time, and changes nothing.
    """
    book = BlockingSeries()
    for at_ns, ns in ((1, 40 * MS), (2, 65 * MS)):
        fresh = Stack(tuple(replace(frame) for frame in SERVING.frames))
        pairs = _pairs(book, _seen(at_ns, [Edge(Kind.CONVOY, fresh, CRUNCHING, Tally(ns))]))

    assert (25 * MS, 0) == pairs[_HANDLE, _CRUNCH, "GIL_CONVOY"]


def test_older_observation_changes_nothing() -> None:
    """
    Of two scrapers that came at once, the one that is served later gets what the other got.
    """
    book = BlockingSeries()
    book.series([_seen(1, [_CONVOY])])
    newer = book.series([_seen(9, [_lost(_CONVOY, 90 * MS)])])

    assert newer == book.series([_seen(5, [_lost(_CONVOY, 65 * MS)])])
    assert newer == book.series([_seen(9, [_lost(_CONVOY, 90 * MS)])])


def test_older_observation_does_not_close_the_books_of_what_came_later() -> None:
    """
    It does not know the process yet.
    """
    book = BlockingSeries()
    book.series([_seen(9), _seen(9, [_CONVOY], pid=1)])

    book.series([_seen(5)])

    later = _seen(11, [_lost(_CONVOY, 65 * MS, 6)], pid=1)
    assert (25 * MS, 2) == _pairs(book, later)[_HANDLE, _CRUNCH, "GIL_CONVOY"]


def test_page_views_give_no_slots() -> None:
    """
    Otherwise the first thing that Prometheus sees of a series would not be zero.
    """
    book = BlockingSeries()
    book.series([_seen(0)])
    book.lately([_seen(1, [_CONVOY])], most=5)

    pairs = _pairs(book, _seen(2, [_lost(_CONVOY, 65 * MS)]))

    assert (0, 0) == pairs[_HANDLE, _CRUNCH, "GIL_CONVOY"]


def test_books_are_closed_with_the_process() -> None:
    """
    One that replaced its program, or has the number of one that has gone, begins anew.
    """
    book = BlockingSeries()
    book.series([_seen(1, [_CONVOY])])
    again = replace(_seen(2, [_lost(_CONVOY, 30 * MS)]), since_ns=1)

    assert (30 * MS, 0) == _pairs(book, again)["other", "other", "GIL_CONVOY"]
    book.series([_seen(3, pid=1)])
    assert (40 * MS, 4) == _pairs(book, _seen(4, [_CONVOY]))["other", "other", "GIL_CONVOY"]


def test_processes_do_not_share_books() -> None:
    """
    The same names in two of them.
    """
    book = BlockingSeries()
    both = [_seen(1, [_CONVOY]), _seen(1, [_lost(_CONVOY, 70 * MS)], pid=1)]

    blames = book.series(both)

    assert [40 * MS, 70 * MS] == [
        sum(ns for _, ns, _ in blames[owner].pairs) for owner in (_OWNER, _OTHER)
    ]


def test_invalid_processes_and_none_at_all() -> None:
    """
    Figures that cannot be trusted have no series; with no pairs wanted, nothing has.
    """
    assert {} == BlockingSeries().series([replace(_seen(1, [_CONVOY]), invalid="why")])
    assert {} == BlockingSeries(pairs=0).series([_seen(1, [_CONVOY])])
    assert {} == BlockingSeries().series([])


def test_lately_is_what_was_lost_since_a_minute_ago() -> None:
    """
    The costliest pairs of that time, which need not be those of all the time.
    """
    book = BlockingSeries()
    behind = Edge(Kind.PREEMPTION, CRUNCHING, SERVING, Tally(5 * _S, 900))
    idle = Edge(Kind.CONVOY, SERVING, MATCHING, Tally(90 * _S, 9000))
    book.series([_seen(100 * _S, [_CONVOY, behind, idle])])
    now = [_lost(_CONVOY, 640 * MS), _lost(behind, 5200 * MS), idle]

    (lately,) = book.lately([_seen(160 * _S, now, [_SLOW])], most=5).values()

    assert (60 * _S, False, 800 * MS) == (lately.period_ns, lately.is_all, lately.lost_ns)
    assert (
        RecentPair(_HANDLE, _CRUNCH, "GIL_CONVOY", 600 * MS),
        RecentPair(_CRUNCH, _HANDLE, "GIL_PREEMPTION", 200 * MS),
    ) == lately.pairs
    assert (
        RecentHolder(_CRUNCH, "", 600 * MS, ((State.PYTHON, "", 600 * MS),)),
        RecentHolder(_HANDLE, "", 200 * MS, ((State.PYTHON, "", 200 * MS),)),
    ) == lately.holders
    assert (SlowHolder(_SCAN, Tally(260 * MS, 12), 41 * MS),) == lately.slow_holders


def test_first_look_has_all_the_time() -> None:
    """
    Without a scraper and without another view there is nothing to compare with.
    """
    (lately,) = BlockingSeries().lately([_seen(7 * _S, [_CONVOY])], most=5).values()

    assert (7 * _S, True, 40 * MS) == (lately.period_ns, lately.is_all, lately.lost_ns)


def test_most_are_shown_and_the_sum_has_all() -> None:
    """
    One pair of six.
    """
    seen = with_edges().observation

    (lately,) = BlockingSeries().lately([seen], most=1).values()

    assert [1100 * MS] == [pair.lost_ns for pair in lately.pairs]
    assert [260 * MS] == [slow.drop_latency.ns for slow in lately.slow_holders]
    assert 1940 * MS == lately.lost_ns
