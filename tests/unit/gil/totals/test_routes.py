"""Sums by route: which requests count where, and behind whom they waited."""

import pytest

from gilscope.gil.totals import routes as module
from gilscope.gil.totals.routes import RouteNames, RouteSums, all_of, never_less, told_routes
from gilscope.gil.totals.traces import RawTrace, TraceBook
from gilscope.model.stack import UNKNOWN_STACK, Stack
from gilscope.model.traces import RouteWait
from support.recordings.gil import CRUNCHING, MS, SERVING


def _raw(route: str, wait_ms: int, waits: int = 1, longest_ms: int = 0) -> RawTrace:
    longest_ns = (longest_ms or wait_ms) * MS
    return RawTrace(wait_ms * MS, waits, longest_ns, 5 * MS, 1, 20, 0xC0, 0, route)


def _sums(*traces: tuple[RawTrace, Stack]) -> dict[str, RouteSums]:
    return all_of(RouteNames(), {}, traces)


def test_requests_of_a_route_add_up() -> None:
    """
    Behind whom they waited is who has kept their longest waits for the most time.
    """
    told = told_routes(
        _sums(
            (_raw("/pay", 30, 3, 9), SERVING),
            (_raw("/pay", 8), CRUNCHING),
            (_raw("/pay", 7), CRUNCHING),
            (_raw("/list", 50), UNKNOWN_STACK),
            (_raw("/list", 1), SERVING),
        )
    )

    assert (
        RouteWait("/list", 2, 51 * MS, 2, 50 * MS, SERVING),
        RouteWait("/pay", 3, 45 * MS, 5, 9 * MS, CRUNCHING),
    ) == told


def test_requests_without_a_route_are_told_beside_those_with_one() -> None:
    """
    Where no route is published there is nothing to be said.
    """
    without = (_raw("", 10), CRUNCHING)

    assert () == told_routes(_sums(without))
    assert ["/pay", None] == [
        each.route for each in told_routes(_sums(without, (_raw("/pay", 20), CRUNCHING)))
    ]


def test_routes_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Further ones are one; of a route with ever new holders the first are told apart.
    """
    monkeypatch.setattr(module, "_MOST_ROUTES", 2)
    monkeypatch.setattr(module, "_MOST_HOLDERS", 1)
    sums = _sums(*((_raw(f"/{number}", 1), CRUNCHING) for number in range(5)))
    held = _sums((_raw("/", 1), CRUNCHING), (_raw("/", 9), SERVING))["/"]

    assert {"/0": 1, "/1": 1, "other": 3} == {name: each.requests for name, each in sums.items()}
    assert {CRUNCHING: MS} == held.holders_ns


def test_routes_that_have_a_name_keep_it_and_no_others_get_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    In whatever order their traces come: what is shown for good stays as small as the bound.
    """
    monkeypatch.setattr(module, "_MOST_ROUTES", 2)
    book = TraceBook()
    shown = []
    for first in (0, 3, 6):
        now = {f"{at}": _raw(f"/{at}", 1) for at in range(first, first + 3)}
        shown.append({each.route for each in book.traces(now, lambda _: CRUNCHING, 0).routes})

    assert [{"/0", "/1", "other"}] * 3 == shown


def test_requests_without_a_route_are_no_further_route(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    However many routes there are.
    """
    monkeypatch.setattr(module, "_MOST_ROUTES", 1)
    sums = _sums((_raw("/pay", 1), CRUNCHING), (_raw("", 2), CRUNCHING))

    assert {"/pay": MS, "": 2 * MS} == {name: each.wait_ns for name, each in sums.items()}


def test_a_name_is_as_long_as_a_label() -> None:
    """
    And printable, for a program may publish anything.
    """
    (name,) = _sums((_raw("/\x1b[31m" + 900 * "x", 1), CRUNCHING))

    assert "\x1b" not in name
    assert 200 == len(name)


def test_sums_never_fall() -> None:
    """
    Where a request is told another route than before, the one before keeps what it was shown with.
    """
    shown = _sums((_raw("/pay", 30), CRUNCHING), (_raw("/", 4), CRUNCHING), (_raw("", 9), SERVING))
    later = never_less(_sums((_raw("/pay", 31, 2), CRUNCHING), (_raw("", 1), SERVING)), shown)

    assert {"/pay": (31 * MS, 2), "/": (4 * MS, 1), "": (MS, 1)} == {
        name: (each.wait_ns, each.waits) for name, each in later.items()
    }


def test_a_book_has_routes_of_all_its_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of those in the table, those that have left it, and those that have been forgotten.
    """
    monkeypatch.setattr("gilscope.gil.totals.traces._MOST_OPEN", 1)
    book = TraceBook()
    book.keep({"one": _raw("/pay", 5)}, lambda _: CRUNCHING)
    book.keep({"two": _raw("", 7)}, lambda _: CRUNCHING)
    now = {"two": _raw("/list", 1), "three": _raw("/pay", 2)}
    (list_, pay) = book.traces(now, lambda _: CRUNCHING, 0).routes

    assert RouteWait("/list", 1, 8 * MS, 2, 7 * MS, CRUNCHING) == list_
    assert RouteWait("/pay", 2, 7 * MS, 2, 5 * MS, CRUNCHING) == pay
