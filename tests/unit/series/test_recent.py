"""The last minutes, from samples at totals."""

from itertools import pairwise

import pytest

from gilscope.series.recent import WINDOW_NS, Curve, History, Stretch, Totals

_S = 1_000_000_000
_MS = 1_000_000
_LONG_AGO = 1000 * _S


def _lost(ns: int, held_ns: int | None = None, since_ns: int = 0) -> Totals:
    return Totals(since_ns, ns, held_ns)


def test_rates_are_those_between_looks() -> None:
    """
    The last stretch is from the last look until now.
    """
    history = History[str]()
    history.enter(10 * _S, {"a": _lost(1 * _S, 2 * _S)})
    history.enter(15 * _S, {"a": _lost(11 * _S, 4 * _S)})

    curve = history.curve("a", 17 * _S, _lost(12 * _S, 4 * _S))

    assert (
        Stretch(17 * _S, 7 * _S, 0.1, 0.2),
        Stretch(7 * _S, 2 * _S, 2.0, 0.4),
        Stretch(2 * _S, 0, 0.5, 0.0),
    ) == curve.stretches


@pytest.mark.parametrize(("now_s", "lost"), [(30, 0.7), (27, 7 / 12), (26, 7 / 11)])
def test_figure_of_now_is_of_ten_seconds_or_so(now_s: int, lost: float) -> None:
    """
    Since the last look that is at least eight seconds old: shorter ones jump about.
    """
    history = History[str]()
    for at_s, ns in ((10, 0), (15, 3 * _S), (20, 3 * _S), (25, 7 * _S)):
        history.enter(at_s * _S, {"a": _lost(ns)})

    curve = history.curve("a", now_s * _S, _lost(10 * _S))

    assert lost == pytest.approx(curve.lost)


def test_a_young_process_begins_with_nothing() -> None:
    """
    It has figures before there was any look: since it is traced.
    """
    now = _lost(3 * _S, 1 * _S, since_ns=_LONG_AGO)
    expected = Curve(1.5, 0.5, (Stretch(2 * _S, 0, 1.5, 0.5),))
    history = History[str]()

    assert expected == history.curve("a", _LONG_AGO + 2 * _S, now)
    history.enter(_LONG_AGO + 2 * _S, {"a": now})
    assert expected == history.curve("a", _LONG_AGO + 2 * _S, now)


def test_what_has_no_beginning_needs_two_looks() -> None:
    """
    All that a log says when it is read first may be of last week.
    """
    history = History[str]()
    history.enter(_LONG_AGO, {"a": _lost(900 * _S, since_ns=-1)})

    assert Curve(None, None, ()) == history.curve("a", _LONG_AGO, _lost(900 * _S, since_ns=-1))
    later = history.curve("a", _LONG_AGO + 10 * _S, _lost(901 * _S, since_ns=-1))
    assert 0.1 == later.lost


def test_what_is_not_known_is_no_zero() -> None:
    """
    Held times may come and go with the mode.
    """
    history = History[str]()
    history.enter(10 * _S, {"a": _lost(0)})
    history.enter(20 * _S, {"a": _lost(0, 5 * _S)})

    curve = history.curve("a", 30 * _S, _lost(0, 6 * _S))

    assert [None, 0.1] == [each.held for each in curve.stretches[-2:]]


def test_figures_that_were_put_right_are_no_negative_rates() -> None:
    """
    An estimate may turn out to have been too high.
    """
    history = History[str]()
    history.enter(10 * _S, {"a": _lost(5 * _S, 5 * _S)})

    curve = history.curve("a", 20 * _S, _lost(4 * _S, 4 * _S))

    assert (0.0, 0.0) == (curve.lost, curve.held)


@pytest.mark.parametrize(("locks", "held"), [(1, 1.0), (2, 1.5)])
def test_no_more_is_held_than_there_are_locks(locks: int, held: float) -> None:
    """
    An estimate that catches up comes to more than the time that has passed.
    """
    history = History[str]()
    history.enter(10 * _S, {"a": Totals(0, 0, 0, locks)})

    curve = history.curve("a", 20 * _S, Totals(0, 0, 15 * _S, locks))

    assert (held, held) == (curve.held, curve.stretches[-1].held)


def test_looks_are_kept_apart_and_for_five_minutes() -> None:
    """
    Who scrapes ten times a second for an hour leaves no more than who scrapes every five seconds.
    """
    history = History[str]()
    for number in range(36_000):
        at_ns = number * 100 * _MS
        history.enter(at_ns, {"a": _lost(at_ns // 2)})
    now_ns = 3600 * _S

    stretches = history.curve("a", now_ns, _lost(now_ns // 2)).stretches

    assert 75 == len(stretches)
    assert {0.5} == {each.lost for each in stretches}
    assert WINDOW_NS >= stretches[0].began_ns > WINDOW_NS - 5 * _S
    assert all(before.ended_ns == after.began_ns for before, after in pairwise(stretches))


def test_a_look_that_comes_late_changes_nothing() -> None:
    """
    Two may look at the same time, and the one who looked first may tell of it last.
    """
    history = History[str]()
    history.enter(20 * _S, {"a": _lost(2 * _S)})
    history.enter(19 * _S, {"a": _lost(1 * _S)})

    assert 2 == len(history.curve("a", 30 * _S, _lost(2 * _S)).stretches)


def test_who_has_gone_is_forgotten_and_two_hundred_are_kept() -> None:
    """
    The 201st has its average since it is traced, until there is room for it.
    """
    history = History[int]()
    sharing = {number: _lost(0) for number in range(201)}
    history.enter(10 * _S, sharing)
    assert [2, 1] == [len(history.curve(key, 20 * _S, _lost(0)).stretches) for key in (199, 200)]

    del sharing[0]
    history.enter(20 * _S, sharing)

    assert 2 == len(history.curve(200, 30 * _S, _lost(0)).stretches)
    assert 1 == len(history.curve(0, 30 * _S, _lost(0)).stretches)
