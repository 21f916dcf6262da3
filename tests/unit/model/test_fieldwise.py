"""Arithmetic on values that are made of values."""

from collections.abc import Mapping
from dataclasses import dataclass

from gilscope.model.fieldwise import added, larger, left


@dataclass(frozen=True)
class _Inner:
    ns: int = 0
    count: int = 0


@dataclass(frozen=True)
class _Outer:
    number: int
    inner: _Inner
    slots: tuple[int, ...]
    by_name: Mapping[str, int]
    by_place: Mapping[str, _Inner]


_ONE = _Outer(1, _Inner(10, 2), (1, 5), {"a": 1, "b": 2}, {"x": _Inner(4, 1)})
_OTHER = _Outer(3, _Inner(7, 9), (2, 2), {"b": 5, "c": 0}, {"x": _Inner(1, 3), "y": _Inner(8, 8)})


def test_sums() -> None:
    """
    Each number is added to its like, and what one side lacks is the other's.
    """
    assert added(_ONE, _OTHER) == _Outer(
        4,
        _Inner(17, 11),
        (3, 7),
        {"a": 1, "b": 7, "c": 0},
        {"x": _Inner(5, 4), "y": _Inner(8, 8)},
    )


def test_the_larger_of_each() -> None:
    """
    By number, not by value: the result may be neither.
    """
    assert larger(_ONE, _OTHER) == _Outer(
        3,
        _Inner(10, 9),
        (2, 5),
        {"a": 1, "b": 5, "c": 0},
        {"x": _Inner(4, 3), "y": _Inner(8, 8)},
    )


def test_what_is_left() -> None:
    """
    What was there before is taken away; entries to which nothing has come are left out.
    """
    now = added(_ONE, _Outer(2, _Inner(1, 1), (0, 1), {"b": 3, "d": 0}, {"y": _Inner(2, 1)}))

    assert left(now, _ONE) == _Outer(2, _Inner(1, 1), (0, 1), {"b": 3}, {"y": _Inner(2, 1)})
