"""Pairs of places that differ only in what one common caller has called."""

from gilscope.model.application import EVERYBODYS
from gilscope.model.gil import Edge, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import Stack, StackState
from gilscope.verdict.callers import CallerPair, caller_pairs
from support.recordings.gil import MS, SERVING, stack

_FILE = "/srv/pi.py"
_RUN = ("run", _FILE, 1, 2)
_SPIN = ("spin", _FILE, 10, 12)
_LEAVES = [(name, _FILE, 20 * at, 20 * at + 1) for at, name in enumerate(("a", "b", "c"), 1)]
_SPINNING = [stack(leaf, _SPIN, _RUN) for leaf in _LEAVES]


def _edge(waiter: Stack, holder: Stack, ms: int = 100) -> Edge:
    return Edge(Kind.CONVOY, waiter, holder, Tally(ms * MS, 1))


def _told(*edges: Edge) -> list[tuple[str, str, int, int]]:
    return [
        (pair.waiter.function, pair.holder.function, pair.lost_ns // MS, pair.pairs)
        for pair in caller_pairs(edges, EVERYBODYS)
    ]


def test_leaves_of_one_caller_are_one() -> None:
    """
    Three functions that `spin` calls keep others waiting, and each other.
    """
    behind = [_edge(SERVING, holder) for holder in _SPINNING]
    turns = [_edge(_SPINNING[at], _SPINNING[at - 1], 50) for at in range(3)]

    assert [("handle", "spin", 300, 3), ("spin", "spin", 150, 3)] == _told(*behind, *turns)


def test_caller_is_the_innermost_of_nearly_all() -> None:
    """
    What stands elsewhere for a little of the time changes nothing, and is told apart.
    """
    elsewhere = stack(("log", _FILE, 90, 91), _RUN)
    behind = [_edge(SERVING, holder) for holder in _SPINNING]

    assert [("handle", "spin", 300, 3)] == _told(*behind, _edge(SERVING, elsewhere, 20))
    assert [("handle", "run", 400, 4)] == _told(*behind, _edge(SERVING, elsewhere))


def test_few_pairs_and_unknown_ends_are_not_rolled_up() -> None:
    """
    Two pairs are two, and nobody knows the caller of what is not known.
    """
    unknown = Stack((), StackState.UNKNOWN)

    assert [] == _told(*(_edge(SERVING, holder) for holder in _SPINNING[:2]))
    assert [] == _told(*(_edge(unknown, holder) for holder in _SPINNING))
    assert () == caller_pairs((), EVERYBODYS)


def test_frames_have_the_line_of_the_function() -> None:
    """
    The lines in it differ.
    """
    (pair,) = caller_pairs([_edge(SERVING, holder) for holder in _SPINNING], EVERYBODYS)

    assert isinstance(pair, CallerPair)
    assert (10, None) == (pair.holder.first_line, pair.holder.line)
