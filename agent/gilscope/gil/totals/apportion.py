"""Scales up what was sampled at random to all that was lost.

Where the stacks of a share of the waits are read only, the time of the others is known, and not
whose it is. From one read to the next it is attributed to what has come to light meanwhile, in
proportion to that: so the figures add up to all that was lost, none ever falls, and what happens
while the share is small counts no less than what happens while it is large.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from gilscope.gil.totals.raw import RawEdge

__all__ = ["Apportionment"]

_Key = TypeVar("_Key")

_NOTHING = RawEdge(0, 0)


class Apportionment(Generic[_Key]):
    """What was left out so far, and among whom it was shared out."""

    def __init__(self, group: Callable[[_Key], int]) -> None:
        """Share out within each *group* alone."""
        self._group = group
        self._before: Mapping[_Key, RawEdge] = {}
        self._pending: dict[int, RawEdge] = defaultdict(lambda: _NOTHING)
        """What is still to be shared out, by group."""
        self._added: dict[_Key, RawEdge] = {}

    def share_out(
        self, sums: Mapping[_Key, RawEdge], left_out: Collection[_Key]
    ) -> dict[_Key, RawEdge]:
        """Return *sums* of all time with those of *left_out* shared out among the others.

        What has found nobody yet stays out of it: see `rest`.
        """
        before, self._before = self._before, sums
        if not self._added and not any(key in sums for key in left_out):
            return dict(sums)
        news: dict[int, list[tuple[_Key, RawEdge]]] = defaultdict(list)
        for key, edge in sums.items():
            new = _less(edge, before.get(key, _NOTHING))
            if key in left_out:
                self._pending[self._group(key)] += new
            elif new != _NOTHING:
                news[self._group(key)].append((key, new))
        for group, members in news.items():
            self._share_out(group, members)
        return {
            key: edge + self._added.get(key, _NOTHING)
            for key, edge in sums.items()
            if key not in left_out
        }

    def rest(self) -> dict[int, RawEdge]:
        """Return what has found nobody yet, by group."""
        return {group: edge for group, edge in self._pending.items() if edge != _NOTHING}

    def _share_out(self, group: int, members: list[tuple[_Key, RawEdge]]) -> None:
        pending = self._pending[group]
        whole = sum((new for _, new in members), start=_NOTHING)
        for key, new in members:
            part = RawEdge(
                pending.ns * new.ns // max(1, whole.ns),
                pending.count * new.count // max(1, whole.count),
            )
            self._added[key] = self._added.get(key, _NOTHING) + part
            self._pending[group] = _less(self._pending[group], part)


def _less(edge: RawEdge, other: RawEdge) -> RawEdge:
    return RawEdge(max(0, edge.ns - other.ns), max(0, edge.count - other.count))
