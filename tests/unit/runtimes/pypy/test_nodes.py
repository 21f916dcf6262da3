"""The chain of nodes that PyPy keeps of a thread."""

import pytest

from gilscope.process.remote_read import TornRead
from gilscope.runtimes.pypy.nodes import NodeKind, Place, place_of, walk
from support.words_in_memory import Words

_STACK, _FIRST, _SECOND, _RETURN = 0x1000, 0x2000, 0x2100, 0x3000
_CHAIN = {
    _STACK: _FIRST,
    _FIRST: _SECOND,
    _FIRST + 8: _RETURN,
    _FIRST + 16: NodeKind.JITTED,
    _SECOND: 0,
    _SECOND + 8: 44,
    _SECOND + 16: NodeKind.CODE,
    _RETURN - 8: 0x7F0012345678,
}


def test_nodes_are_read_innermost_first() -> None:
    """
    Of code that the JIT has made the address is read that it goes on at.
    """
    found = list(walk(Words(_CHAIN), _STACK, 10))

    assert [Place(NodeKind.JITTED, 0x7F0012345678), Place(NodeKind.CODE, 44)] == found


def test_no_more_are_read_than_wanted() -> None:
    """
    A deep stack costs no more.
    """
    assert 1 == len(list(walk(Words(_CHAIN), _STACK, 1)))


@pytest.mark.parametrize("changed", [{_SECOND + 16: 6}, {_SECOND + 16: 0}, {_FIRST: 0x9000}])
def test_what_is_no_node_is_refused(changed: dict[int, int]) -> None:
    """
    Another kind, or memory that is not there: the thread has moved on.
    """
    with pytest.raises(TornRead):
        list(walk(Words({**_CHAIN, **changed}), _STACK, 10))


@pytest.mark.parametrize(
    "place", [Place(NodeKind.CODE, 44), Place(NodeKind.JITTED, 0x7F0012345678)]
)
def test_what_the_probes_note_is_taken_apart(place: Place) -> None:
    """
    One number has the kind in its lowest bits.
    """
    assert place == place_of(place.value << 3 | place.kind)


def test_another_kind_is_none() -> None:
    """
    Newer PyPys may have more kinds.
    """
    assert place_of(44 << 3 | 7) is None
