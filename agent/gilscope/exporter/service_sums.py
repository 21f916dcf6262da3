"""Adds up the processes of each service, those that have gone included: no counter runs back."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from gilscope.exporter.samples import Exemplar, Labels, Rows, Series
from gilscope.metrics import table as metrics
from gilscope.metrics.table import Family
from gilscope.model.histogram import BOUNDS_NS, Histogram
from gilscope.model.observation import Observation
from gilscope.series.by_name.owners import Owner, OwnerOf
from gilscope.series.by_name.remembered import Remembered
from gilscope.text.units import NS_PER_S

__all__ = ["ServiceSums"]

_OTHER: Final = "other"
_TOLD_TIMES: Final = 8
"""How often the last figures of a service are told whose end no scrape has seen: there may be
several that ask, in turns."""
_MOST_ROWS: Final = 100
"""Of a family in one service: each process may name as many routes, and the next one others."""

Add = Callable[[Mapping[Family, Rows], Labels, Observation], None]
"""Adds what is known of one process to families, with the labels that are given."""

_COMBINE: Final[Mapping[str, Callable[[float, float], float]]] = {
    "sum": lambda one, other: one + other,
    "max": max,
    "min": min,
}


class ServiceSums:
    """What the processes of each service have counted, from when the first of them was seen.

    What was last seen of one that has gone stays in the sums, and so does what was seen of one
    whose figures cannot be trusted any more.
    """

    def __init__(
        self,
        add: Add,
        owner_of: OwnerOf,
        forgotten: Callable[[Collection[Owner]], None] = lambda _: None,
    ) -> None:
        """Sum up what *add* tells of a process, for its owner by *owner_of*.

        *forgotten* is told whose counters will begin at 0.
        """
        self._add, self._owner_of = add, owner_of
        self._forgotten = forgotten
        self._last: dict[tuple[object, ...], Observation] = {}
        """Of each process, while it is seen: what could be trusted."""
        self._told: set[tuple[object, ...]] = set()
        """Those whose last figures were exported."""
        self._kept: Remembered[Owner, _Kept] = Remembered(_Kept)

    def add_to(self, families: Mapping[Family, Series], seen: Sequence[Observation]) -> None:
        """Add to *families* what was *seen*, and what has gone before."""
        self._take_gone({each.key for each in seen})
        now: dict[Owner, _Families] = {}
        for each in seen:
            owner = self._owner_of(each.process)
            of_owner = now.setdefault(owner, _Families())
            self._add(of_owner, owner, each)
            if each.is_valid:
                self._last[each.key] = each
                self._told.add(each.key)
            elif (last := self._last.get(each.key)) is not None:
                before = _Families()
                self._add(before, owner, last)
                of_owner.count(before)
        self._forget_absent(now, seen)
        self._write_gone(families, now)
        trusted = {self._owner_of(each.process) for each in seen if each.is_valid}
        for owner, of_owner in now.items():
            for family, sums in of_owner.items():
                if family.type == "gauge":
                    sums.write(families[family])
            if owner in trusted:
                for sums in self._kept[owner].advanced(of_owner):
                    sums.write(families[sums.family])

    def _write_gone(self, families: Mapping[Family, Series], present: Collection[Owner]) -> None:
        """Tell some times more of services of which nobody is left, if any has gone since."""
        for owner, kept in self._kept.items():
            if kept.untold_times and owner not in present:
                kept.untold_times -= 1
                for sums in kept.advanced({}):
                    sums.write(families[sums.family])

    def note(self, seen: Sequence[Observation]) -> None:
        """Know what was *seen* between two scrapes: who has gone by the next has counted that."""
        self._take_gone({each.key for each in seen})
        for each in seen:
            if each.is_valid:
                last = self._last.get(each.key)
                self._last[each.key] = each
                if last is None or not last.has_ended:
                    self._told.discard(each.key)
        self._forget_absent({self._owner_of(each.process) for each in seen}, seen)

    def _forget_absent(self, present: Collection[Owner], seen: Sequence[Observation]) -> None:
        if seen:
            at_ns = max(each.at_ns for each in seen)
            self._forgotten(self._kept.forget_absent(present, at_ns))

    def _take_gone(self, present: Collection[tuple[object, ...]]) -> None:
        """Keep what those have counted that are not seen any more."""
        for key in self._last.keys() - present:
            last = self._last.pop(key)
            owner = self._owner_of(last.process)
            gone = _Families()
            self._add(gone, owner, last)
            self._kept[owner].gone.count(gone)
            if key not in self._told:
                self._kept[owner].untold_times = _TOLD_TIMES
            self._told.discard(key)


class _Sums:
    """The samples of one family; those with the same labels are one."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: dict[Labels, float] = {}
        """Times are in nanoseconds: whole numbers add up to the same in any order."""
        self.histograms: dict[Labels, Histogram] = {}
        self.exemplars: dict[Labels, list[Exemplar]] = {}
        self.are_times = False
        self._combine = _COMBINE[family.together]

    def add(self, labels: Labels, value: float) -> None:
        """Add one counter or gauge."""
        known = self.values.get(labels)
        self.values[labels] = value if known is None else self._combine(known, value)

    def add_ns(self, labels: Labels, ns: float) -> None:
        """Add one counter or gauge that is a time."""
        self.are_times = True
        self.add(labels, ns)

    def add_histogram(
        self, labels: Labels, histogram: Histogram, exemplars: Iterable[Exemplar] = ()
    ) -> None:
        """Add one histogram of times."""
        known = self.histograms.get(labels)
        if known is None:
            self.histograms[labels] = histogram
        else:
            self.histograms[labels] = known + histogram
        for each in exemplars:
            self.exemplars.setdefault(labels, []).append(each)

    def extend(self, other: "_Sums") -> None:
        """Add all samples of *other*."""
        self.are_times |= other.are_times
        for labels, value in other.values.items():
            self.add(labels, value)
        for labels, histogram in other.histograms.items():
            self.add_histogram(labels, histogram, other.exemplars.get(labels, ()))

    def hold_up(self, told: "_Sums") -> None:
        """Have nothing less than what was *told* before: none may run back."""
        self.are_times |= told.are_times
        for labels, before in told.values.items():
            if before > self.values.get(labels, 0):
                self.values[labels] = before
        for labels, had in told.histograms.items():
            has = self.histograms.get(labels)
            if has is None:
                self.histograms[labels] = had
            elif has != had:
                self.histograms[labels] = has.with_each(max, had)

    def renamed(self, name: Callable[[Labels], Labels]) -> "_Sums":
        """Return the same with the labels that *name* makes of them."""
        made = _Sums(self.family)
        made.are_times = self.are_times
        for labels, value in self.values.items():
            made.add(name(labels), value)
        for labels, histogram in self.histograms.items():
            made.add_histogram(name(labels), histogram, self.exemplars.get(labels, ()))
        return made

    def write(self, series: Series) -> None:
        """Add them to *series*."""
        if self.family is metrics.TARGET_INFO:
            # Who joins with it needs one. Its values are numbers of processes here, and its last
            # label is what these call their service: one of a server's two may not say.
            series.add(max(self.values, key=lambda each: (each[-1] != "", self.values[each])), 1)
            return
        for labels, value in self.values.items():
            series.add(labels, value / NS_PER_S if self.are_times else value)
        for labels, histogram in self.histograms.items():
            series.add_histogram(labels, histogram, _latest(self.exemplars.get(labels, ())))


class _Families(dict[Family, _Sums]):
    """Families of samples, made when something is added to them."""

    def __missing__(self, family: Family) -> _Sums:
        sums = self[family] = _Sums(family)
        return sums

    def count(self, others: "_Families") -> None:
        """Add what counts in *others*; what led to it is told but once."""
        for family, sums in others.items():
            if family.type != "gauge":
                sums.exemplars.clear()
                self[family].extend(sums)


class _Kept:
    """What is remembered of one service."""

    def __init__(self) -> None:
        self.gone = _Families()
        """Of processes that are not seen any more."""
        self.untold_times = 0
        """How often that is to be exported yet although nobody is left."""
        self._told = _Families()
        """What was exported last."""
        self._admitted: dict[Family, set[Labels]] = {}
        """Which rows have series of their own; of all further ones the last label is `other`."""

    def advanced(self, now: Mapping[Family, _Sums]) -> Iterator[_Sums]:
        """Yield the families of what counts: *now* with what has gone, and nothing below before."""
        for family in {**self._told, **self.gone, **now}:
            if family.type == "gauge":
                continue
            if family in self.gone:
                self.gone[family] = self._limited(self.gone[family])
            sums = _Sums(family)
            for part in (now, self.gone):
                if family in part:
                    sums.extend(self._limited(part[family]))
            sums.hold_up(self._told[family])
            self._told[family] = sums
            yield sums

    def _limited(self, sums: _Sums) -> _Sums:
        """Return *sums* with no more rows than may have series of their own."""
        admitted = self._admitted.setdefault(sums.family, set())
        rows = sums.values.keys() | sums.histograms.keys()
        if rows <= admitted:
            return sums
        # In the order in which they are told, so that those of one route are all in or all out.
        for labels in (*sums.values, *sums.histograms):
            if len(admitted) < _MOST_ROWS:
                admitted.add(labels)
        return (
            sums
            if rows <= admitted
            else sums.renamed(
                lambda labels: labels if labels in admitted else (*labels[:-1], _OTHER)
            )
        )


def _latest(exemplars: Iterable[Exemplar]) -> Iterable[Exemplar]:
    """Return the last one of those in each bucket."""
    by_time = sorted(exemplars, key=lambda each: each.at_unix_ns)
    return {bisect_left(BOUNDS_NS, each.ns): each for each in by_time}.values()
