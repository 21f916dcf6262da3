"""Adds up the processes of each service, those that have gone included: no counter runs back."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

    Of one that has ended its last figures stay in the sums. One that goes without having been seen
    to end, or whose figures cannot be trusted any more, leaves what was last told of it; what
    others have gained by the same moment is then left out, as far as it takes for none to fall.
    """

    def __init__(self, add: Add, owner_of: OwnerOf) -> None:
        """Sum up what *add* tells of a process, for its owner by *owner_of*."""
        self._add, self._owner_of = add, owner_of
        self._ended: dict[tuple[object, ...], Observation] = {}
        self._kept: Remembered[Owner, _Kept] = Remembered(_Kept)

    def add_to(self, families: Mapping[Family, Series], seen: Sequence[Observation]) -> None:
        """Add to *families* what was *seen*, and what has gone before."""
        self._take_gone(seen)
        now: dict[Owner, _Families] = {}
        for each in seen:
            owner = self._owner_of(each.process)
            self._add(now.setdefault(owner, _Families()), owner, each)
        self._kept.forget_absent(now, max((each.at_ns for each in seen), default=0))
        trusted = {self._owner_of(each.process) for each in seen if each.is_valid}
        for owner, of_owner in now.items():
            for family, sums in of_owner.items():
                if family.type == "gauge":
                    sums.write(families[family])
            if owner in trusted:
                for sums in self._kept[owner].advanced(of_owner):
                    sums.write(families[sums.family])

    def _take_gone(self, seen: Iterable[Observation]) -> None:
        """Keep what those have counted that had ended, and are not seen any more."""
        by_key = {each.key: each for each in seen}
        for key, last in self._ended.items():
            if key not in by_key:
                owner = self._owner_of(last.process)
                self._add(self._kept[owner].gone, owner, last)
        self._ended = {key: each for key, each in by_key.items() if each.has_ended}


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
        elif any(histogram.slots):  # most processes of a thousand wait for nothing
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
            # Who joins with it needs one. Its values are numbers of processes here.
            commonest = Counter(self.values).most_common(1)
            series.add(commonest[0][0], 1)
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


class _Kept:
    """What is remembered of one service."""

    def __init__(self) -> None:
        self.gone = _Families()
        """Of processes that are not seen any more."""
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
            self._hold_up(sums, self._told[family])
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

    def _hold_up(self, sums: _Sums, told: _Sums) -> None:
        """Let *sums* not be less than *told*: what is missing has gone."""
        missing = _Sums(sums.family)
        for labels, before in told.values.items():
            less = before - sums.values.get(labels, 0)
            if less > 0:
                missing.values[labels] = less
        for labels, had in told.histograms.items():
            has = sums.histograms.get(labels)
            if has is None or has.slots != had.slots or has.sum_ns < had.sum_ns:
                lost = had if has is None else _shortfall(had, has)
                if lost is not None:
                    missing.histograms[labels] = lost
        if missing.values or missing.histograms:
            missing.are_times = sums.are_times = sums.are_times or told.are_times
            self.gone[sums.family].extend(missing)
            sums.extend(missing)


def _shortfall(before: Histogram, now: Histogram) -> Histogram | None:
    """Return what *now* has less than *before*, slot by slot; None: nothing."""
    slots = tuple(max(0, had - has) for had, has in zip(before.slots, now.slots, strict=True))
    less_ns = max(0, before.sum_ns - now.sum_ns)
    return Histogram(slots, less_ns) if less_ns or any(slots) else None


def _latest(exemplars: Iterable[Exemplar]) -> Iterable[Exemplar]:
    """Return the last one of those in each bucket."""
    by_time = sorted(exemplars, key=lambda each: each.at_unix_ns)
    return {bisect_left(BOUNDS_NS, each.ns): each for each in by_time}.values()
