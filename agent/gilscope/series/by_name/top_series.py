"""Decides which places get time series of their own, and what each series shows.

However many places a process has, it has a bounded number of series: the costliest ones get their
own, for good, and all others share one for each kind. What a place has lost before it got its own
stays in the shared one. So a series begins at zero, none ever runs back, and all of them together
are what has been lost altogether.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from gilscope.series.by_name.ledger import Labels, Ledger, Line, Place
from gilscope.values import dataclass

__all__ = ["OTHER", "Shown", "Sums", "TopSeries", "advanced", "shown_over_time", "sums_of"]

OTHER: Final = "other"
"""In place of each name of what has no series of its own."""

Shown = tuple[Labels, int, int]
"""Names and kind, time in ns, and how often."""

_LEAST_NS: Final = 10_000_000
_LEAST_SHARE: Final = 0.005
"""A place that has lost less than either of these lately, the one absolute and the other of all
that was lost, is a trifle."""

_MARK_NS: Final = 300_000_000_000
"""Lately means since the last mark but one, and marks are so far apart. What begins to hurt today
is no trifle because of all that was lost last month."""


_NOTHING: Final = (0, 0)


@dataclass(frozen=True, slots=True)
class Sums:
    """What had been lost at some time: times in ns, and how often."""

    kinds: Mapping[Labels, tuple[int, int]]
    lines: Mapping[Line, tuple[int, int]]


@dataclass(slots=True, eq=False)
class _Series:
    """What is exported under one set of labels."""

    labels: Labels
    before_ns: int = 0
    before: int = 0
    """What its line had lost already when the series began."""
    changed_ns: int = 0
    """When its line changed last."""
    shown_ns: int = 0
    shown: int = 0


class TopSeries:
    """The series of what one process loses, or the processes of one service."""

    def __init__(  # noqa: PLR0913 - most have defaults
        self,
        totals: Ledger,
        limit: int,
        width: int,
        *,
        at_once: int = 0,
        most: int | None = None,
        idle_ns: int | None = None,
    ) -> None:
        """Give at most *limit* places of *totals*, which have *width* names, their own series.

        The first *at_once* of them have these as soon as they occur, with all that they have
        lost, and however little that is. No more than *most* series are their own, of whatever
        kind. Where these are all given away, places that have lost nothing for *idle_ns* lose
        theirs; unless it is given none does.
        """
        self._totals = totals
        self._limit = limit
        self._others = (OTHER,) * width
        self._shared: dict[Labels, _Series] = {}
        self._own: dict[Line, _Series] = {}
        self._left_at_once = at_once
        self._most = most
        self._idle_ns = idle_ns
        self._first: set[Place] = set()
        self._chosen: set[Place] = set()
        self._marks: tuple[_Mark, _Mark] | None = None
        self._shown: tuple[Shown, ...] | None = None
        self._gone: dict[Labels, tuple[int, int]] = {}
        """What series have shown that are no more, by kind."""

    @property
    def chosen(self) -> Collection[Place]:
        """The places that have series of their own."""
        return self._chosen

    def shown(self, at_ns: int) -> tuple[Shown, ...]:
        """Return what every series shows now, at *at_ns*; the shared ones first."""
        changed = self._totals.take_changed()
        # A service gets to know of kinds with each new process, before anything is lost in them.
        if changed or self._shown is None or len(self._shared) < len(self._totals.sums):
            places = {line.place: None for line in changed}
            for line in changed:
                if line in self._own:
                    self._own[line].changed_ns = at_ns
            if self._idle_ns is not None and self._is_full:
                self._let_go_idle(at_ns - self._idle_ns)
            self._choose_first(places)
            self._choose(places, self._mark(at_ns))
            for line in changed:
                if line.place in self._chosen and line not in self._own and self._has_room:
                    labels = (*line.place.names, *line.kind)
                    is_first = line.place in self._first
                    before = (0, 0) if is_first else (line.ns, line.count)
                    self._own[line] = _Series(labels, *before, changed_ns=at_ns)
            self._shown = self._advance()
        return self._shown

    @property
    def _has_room(self) -> bool:
        return self._most is None or len(self._own) < self._most

    @property
    def _is_full(self) -> bool:
        return len(self._chosen) >= self._limit or not self._has_room

    def _let_go_idle(self, since_ns: int) -> None:
        """Take their series from places that have lost nothing since *since_ns*.

        What those have shown is shown nowhere any more: under `other` it would be a loss of now.
        """
        busy = {line.place for line, each in self._own.items() if each.changed_ns > since_ns}
        for line in [line for line in self._own if line.place not in busy]:
            series = self._own.pop(line)
            ns, count = self._gone.get(line.kind, _NOTHING)
            self._gone[line.kind] = ns + series.shown_ns, count + series.shown
        self._chosen &= busy
        self._first &= busy

    def _mark(self, at_ns: int) -> "_Mark":
        if self._marks is None:
            self._marks = (_Mark(at_ns, 0, {}), _Mark(at_ns, 0, {}))
        old, last = self._marks
        if at_ns - last.at_ns >= _MARK_NS:
            by_place = {place: place.ns for place in self._totals.places.values()}
            self._marks = old, last = last, _Mark(at_ns, self._totals.ns, by_place)
        return old

    def _choose_first(self, places: Iterable[Place]) -> None:
        """Give slots to places that have never been part of a shared series."""
        if self._left_at_once > 0:
            # Until these are given away, whatever has none has only just occurred.
            fresh = [place for place in places if place not in self._first]
            fresh.sort(key=lambda place: -place.ns)
            first = fresh[: self._left_at_once]
            self._left_at_once -= len(first)
            self._first.update(first)
            self._chosen |= self._first

    def _choose(self, places: Iterable[Place], since: "_Mark") -> None:
        """Give free slots to the costliest of *places*, which have just lost something."""
        free = self._limit - len(self._chosen)
        least_ns = max(_LEAST_NS, _LEAST_SHARE * (self._totals.ns - since.ns))
        lately_ns = {
            place: place.ns - since.by_place.get(place, 0)
            for place in places
            if place not in self._chosen
        }
        dear = [place for place, ns in lately_ns.items() if ns >= least_ns]
        dear.sort(key=lambda place: -lately_ns[place])
        # Never all that is left: what a program does while it starts is not what it does later.
        self._chosen.update(dear[: (free + 1) // 2])

    def _advance(self) -> tuple[Shown, ...]:
        left_ns = {kind: of_kind.ns for kind, of_kind in self._totals.sums.items()}
        left = {kind: of_kind.count for kind, of_kind in self._totals.sums.items()}
        for kind, (ns, count) in self._gone.items():
            left_ns[kind] -= ns
            left[kind] -= count
        own_ns, own = [], []
        for line, series in self._own.items():
            own_ns.append(line.ns - series.before_ns)
            own.append(line.count - series.before)
            left_ns[line.kind] -= own_ns[-1]
            left[line.kind] -= own[-1]
        for kind in left:
            if kind not in self._shared:
                self._shared[kind] = _Series((*self._others, *kind))
        everything = (*self._shared.values(), *self._own.values())
        # Both mappings have the kinds in the order in which they occurred.
        times = advanced([each.shown_ns for each in everything], [*left_ns.values(), *own_ns])
        numbers = advanced([each.shown for each in everything], [*left.values(), *own])
        for each, ns, number in zip(everything, times, numbers, strict=True):
            each.shown_ns, each.shown = ns, number
        return tuple((each.labels, each.shown_ns, each.shown) for each in everything)


@dataclass(frozen=True, slots=True)
class _Mark:
    """What had been lost at some moment."""

    at_ns: int
    ns: int
    by_place: dict[Place, int]


def sums_of(totals: Ledger) -> Sums:
    """Return what *totals* have added up to so far, for `shown_over_time`."""
    return Sums(
        {kind: (of_kind.ns, of_kind.count) for kind, of_kind in totals.sums.items()},
        {line: (line.ns, line.count) for line in totals.lines},
    )


def shown_over_time(
    totals: Ledger, times: Sequence[Sums], limit: int, width: int
) -> tuple[tuple[Shown, ...], ...]:
    """Return what the series of *totals* show at each of *times*; the shared ones first.

    Nobody has seen them before, and so the *limit* places that are the costliest in the end, which
    have *width* names, have series of their own from the beginning.
    """
    chosen = set(sorted(totals.places.values(), key=lambda place: -place.ns)[:limit])
    own = [line for line in totals.lines if line.place in chosen]
    kinds = list(totals.sums)
    others = (OTHER,) * width
    labels = [(*others, *kind) for kind in kinds] + [(*one.place.names, *one.kind) for one in own]
    shown_ns, shown = [0] * len(labels), [0] * len(labels)
    result = []
    for sums in times:
        lines = [sums.lines.get(line, _NOTHING) for line in own]
        left = [_left(sums, kind, own) for kind in kinds]
        shown_ns = list(advanced(shown_ns, [ns for ns, _ in (*left, *lines)]))
        shown = list(advanced(shown, [count for _, count in (*left, *lines)]))
        result.append(tuple(zip(labels, shown_ns, shown, strict=True)))
    return tuple(result)


def _left(sums: Sums, kind: Labels, own: Iterable[Line]) -> tuple[int, int]:
    """Return what *sums* have of a kind beside the lines in *own*."""
    ns, count = sums.kinds.get(kind, _NOTHING)
    for line in own:
        if line.kind == kind:
            line_ns, line_count = sums.lines.get(line, _NOTHING)
            ns, count = ns - line_ns, count - line_count
    return ns, count


def advanced(shown: Sequence[int], actual: Sequence[int]) -> Sequence[int]:
    """Return *shown* brought up to *actual* without any of it running back; the sum is right.

    A wait in flight may turn out to be of another kind, or to have been another holder's. What it
    has added where it was first stays there, and where it belongs that much is left out, until the
    first place has lost as much by itself.
    """
    if all(now >= before for before, now in zip(shown, actual, strict=True)):
        return actual
    left = sum(actual) - sum(shown)
    result = list(shown)
    for at in sorted(range(len(shown)), key=lambda at: shown[at] - actual[at]):
        more = min(actual[at] - shown[at], left)
        if more <= 0:
            break
        result[at] += more
        left -= more
    return result
