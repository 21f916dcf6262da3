"""What was not sampled, shared out among what was not."""

from gilscope.gil.totals.apportion import Apportionment
from gilscope.gil.totals.raw import RawEdge

_Key = tuple[int, str]

_CALL, _CONVOY = 0, 3
_LEFT_OUT = {(kind, "?") for kind in (_CALL, _CONVOY)}
_SERVE, _CRUNCH, _REPLY = (_CONVOY, "serve"), (_CONVOY, "crunch"), (_CALL, "reply")
_CONVOYS, _CALLS = (_CONVOY, "?"), (_CALL, "?")


def _books() -> Apportionment[_Key]:
    return Apportionment(lambda key: key[0])


def test_nothing_left_out_changes_nothing() -> None:
    """
    The sums are shown as they are.
    """
    sums = {_SERVE: RawEdge(5, 1), _REPLY: RawEdge(7, 2)}

    assert sums == _books().share_out(sums, _LEFT_OUT)


def test_it_is_shared_out_in_proportion_within_a_group() -> None:
    """
    Time by time, and numbers by numbers; the others' is not touched.
    """
    sums = {
        _SERVE: RawEdge(30, 1),
        _CRUNCH: RawEdge(10, 3),
        _CONVOYS: RawEdge(400, 8),
        _REPLY: RawEdge(7, 2),
    }
    books = _books()

    assert {
        _SERVE: RawEdge(330, 3),
        _CRUNCH: RawEdge(110, 9),
        _REPLY: RawEdge(7, 2),
    } == books.share_out(sums, _LEFT_OUT)
    assert {} == books.rest()


def test_each_look_shares_out_what_has_come_since() -> None:
    """
    Among what has come since: what was left out later is no earlier one's.
    """
    books = _books()
    books.share_out({_SERVE: RawEdge(10, 1)}, _LEFT_OUT)
    sums = {_SERVE: RawEdge(10, 1), _CRUNCH: RawEdge(5, 1), _CONVOYS: RawEdge(20, 4)}
    books.share_out(sums, _LEFT_OUT)

    later = {**sums, _SERVE: RawEdge(11, 2), _CONVOYS: RawEdge(27, 6)}
    assert {_SERVE: RawEdge(18, 4), _CRUNCH: RawEdge(25, 5)} == books.share_out(later, _LEFT_OUT)


def test_what_finds_nobody_waits_until_somebody_comes() -> None:
    """
    Until then it is the rest, by group.
    """
    books = _books()
    assert {} == books.share_out({_CONVOYS: RawEdge(9, 3), _CALLS: RawEdge(4, 1)}, _LEFT_OUT)
    assert {_CONVOY: RawEdge(9, 3), _CALL: RawEdge(4, 1)} == books.rest()

    sums = {_CONVOYS: RawEdge(9, 3), _CALLS: RawEdge(4, 1), _SERVE: RawEdge(1, 1)}
    assert {_SERVE: RawEdge(10, 4)} == books.share_out(sums, _LEFT_OUT)
    assert {_CALL: RawEdge(4, 1)} == books.rest()


def test_nothing_is_lost_by_rounding() -> None:
    """
    What cannot be divided is shared out later.
    """
    books = _books()
    three = {(_CONVOY, name): RawEdge(1, 1) for name in "abc"}
    shown = books.share_out({**three, _CONVOYS: RawEdge(100, 2)}, _LEFT_OUT)

    assert [RawEdge(34, 1)] * 3 == list(shown.values())
    assert {_CONVOY: RawEdge(1, 2)} == books.rest()


def test_no_figure_falls() -> None:
    """
    Where a wait in flight was thought to be longer than it proved to be, too.
    """
    books = _books()
    books.share_out({_SERVE: RawEdge(10, 1), _CONVOYS: RawEdge(10, 1)}, _LEFT_OUT)
    less = {_SERVE: RawEdge(9, 1), _CONVOYS: RawEdge(9, 1)}

    assert {_SERVE: RawEdge(19, 2)} == books.share_out(less, _LEFT_OUT)
    assert {} == books.rest()
