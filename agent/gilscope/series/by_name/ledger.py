"""Adds up what is lost by the names of its places, for as long as a process is traced."""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeVar

from gilscope.model.gil import Tally
from gilscope.values import dataclass

__all__ = ["Labels", "Ledger", "Line", "Place", "Sum"]

Labels = tuple[str, ...]

_Item = TypeVar("_Item")


@dataclass(slots=True, eq=False)
class Sum:
    """A time and a number that grow."""

    ns: int = 0
    count: int = 0


@dataclass(slots=True, eq=False)
class Place:
    """What is told apart by name: the sites of a waiter and of a holder, or one site."""

    names: Labels
    ns: int = 0


@dataclass(slots=True, eq=False)
class Line:
    """What has been lost at one place in one way."""

    place: Place
    kind: Labels
    """The labels beside the names; may be none."""
    of_kind: Sum
    """What has been lost in this way anywhere."""
    ns: int = 0
    count: int = 0


@dataclass(slots=True, eq=False)
class _Loss:
    """What one key stood for when the list was read last."""

    item: object
    """Kept, for else the ids in the key could become those of something else."""
    line: Line
    ns: int = 0
    count: int = 0


class Ledger:
    """Sums by name of a list of losses that is read again and again.

    A loss that has not changed costs one lookup. Where there is a ledger above, what is gained here
    is gained there as well: it has the sums of several, and of what has been dropped since.
    """

    # A thousand processes have five each.
    __slots__ = (
        "_above",
        "_by_labels",
        "_changed",
        "_losses",
        "lines",
        "ns",
        "places",
        "sums",
    )

    def __init__(self, kinds: Iterable[Labels], above: "Ledger | None" = None) -> None:
        """Have a sum from the start for each of *kinds*: *above*, where there is such a ledger."""
        self._above = above
        self.ns = 0
        self.sums: dict[Labels, Sum] = {}
        """By kind."""
        self.places: dict[Labels, Place] = {}
        self.lines: list[Line] = []
        """In the order in which they were seen first; none goes but by `forget_idle`."""
        self._by_labels: dict[tuple[Labels, Labels], Line] = {}
        self._losses: dict[Hashable, _Loss] = {}
        self._changed: dict[Line, None] = {}
        sums = self.sums if above is None else above.sums
        for kind in kinds:
            sums.setdefault(kind, Sum())

    def update(
        self,
        keys: Sequence[Hashable],
        tallies: Sequence[Tally],
        items: Sequence[_Item],
        name: Callable[[_Item], tuple[Labels, Labels]],
    ) -> None:
        """Take over the list as it is now: *items*, what each has lost, and a key for each.

        A key consists of the ids of an item's parts, so that *name* is asked only once for the
        names of its place and for its kind. Items with the same key are added up. What is not in
        the list any more counts for nothing.
        """
        if len(set(keys)) < len(keys):
            keys, tallies, items = _merged(keys, tallies, items)
        losses = list(map(self._losses.get, keys))
        for loss, key, tally, item in zip(losses, keys, tallies, items, strict=True):
            if loss is None:
                fresh = self._losses[key] = _Loss(item, self._line(*name(item)))
                self._set(fresh, tally.ns, tally.count)
            elif loss.ns != tally.ns or loss.count != tally.count:
                self._set(loss, tally.ns, tally.count)
        if len(self._losses) > len(keys):
            for key in self._losses.keys() - keys:
                self._set(self._losses.pop(key), 0, 0)

    def gain(self, names: Labels, kind: Labels, ns: int, count: int) -> None:
        """Add to a line what it has gained in a ledger below."""
        self._add(self._line(names, kind), ns, count)

    def take_changed(self) -> list[Line]:
        """Return the lines that have changed since this was asked last."""
        changed, self._changed = self._changed, {}
        return list(changed)

    def forget_idle(self, kept: Collection[Place]) -> None:
        """Forget the places of which nothing is in the list any more, but for those in *kept*."""
        used = {loss.line.place for loss in self._losses.values()}.union(kept)
        used.update(line.place for line in self.lines if line.ns or line.count)
        self.forget_all_but(used)

    def forget_all_but(self, used: Collection[Place]) -> None:
        """Forget the places that are not in *used*; what they have lost stays in the sums."""
        self.lines = [line for line in self.lines if line.place in used]
        self.places = {place.names: place for place in self.places.values() if place in used}
        self._by_labels = {(line.place.names, line.kind): line for line in self.lines}
        self._changed = {line: None for line in self._changed if line.place in used}

    def _line(self, names: Labels, kind: Labels) -> Line:
        line = self._by_labels.get((names, kind))
        if line is None:
            place = self.places.setdefault(names, Place(names))
            line = Line(place, kind, self.sums.setdefault(kind, Sum()))
            self._by_labels[names, kind] = line
            self.lines.append(line)
        return line

    def _set(self, loss: _Loss, ns: int, count: int) -> None:
        line, more_ns, more = loss.line, ns - loss.ns, count - loss.count
        loss.ns, loss.count = ns, count
        self._add(line, more_ns, more)
        if self._above is not None:
            self._above.gain(line.place.names, line.kind, more_ns, more)

    def _add(self, line: Line, more_ns: int, more: int) -> None:
        line.ns += more_ns
        line.count += more
        line.place.ns += more_ns
        line.of_kind.ns += more_ns
        line.of_kind.count += more
        self.ns += more_ns
        self._changed[line] = None


def _merged(
    keys: Sequence[Hashable], tallies: Sequence[Tally], items: Sequence[_Item]
) -> tuple[Sequence[Hashable], Sequence[Tally], Sequence[_Item]]:
    sums: dict[Hashable, Tally] = {}
    for key, tally in zip(keys, tallies, strict=True):
        sums[key] = sums.get(key, Tally()) + tally
    by_key = dict(zip(keys, items, strict=True))
    return list(sums), list(sums.values()), [by_key[key] for key in sums]
