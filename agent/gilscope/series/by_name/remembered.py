"""Keeps what is known of services for a while after the last of their processes has gone."""

from collections.abc import Callable, Collection, Hashable
from typing import Final, Generic, TypeVar

from gilscope.text.units import NS_PER_S

__all__ = ["Remembered"]

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

_KEPT_NS: Final = 300 * NS_PER_S
"""A service that is started again within this time continues where it was: no counter falls."""
_MOST_ABSENT: Final = 256


class Remembered(dict[_Key, _Value], Generic[_Key, _Value]):
    """Values by key, made when they are asked for first."""

    def __init__(self, make: Callable[[], _Value]) -> None:
        """Make what is missing with *make*."""
        super().__init__()
        self._make = make
        self._absent_since_ns: dict[_Key, int] = {}

    def __missing__(self, key: _Key) -> _Value:
        value = self[key] = self._make()
        return value

    def forget_absent(self, present: Collection[_Key], at_ns: int) -> list[_Key]:
        """Forget, and return, what has not been *present* for minutes, or is one of too many."""
        absent = {key: self._absent_since_ns.get(key, at_ns) for key in self if key not in present}
        by_age = sorted(absent, key=absent.__getitem__)
        crowd = len(by_age) - _MOST_ABSENT
        gone = [
            key
            for place, key in enumerate(by_age)
            if place < crowd or at_ns - absent[key] >= _KEPT_NS
        ]
        for key in gone:
            del self[key], absent[key]
        self._absent_since_ns = absent
        return gone
