"""Counters of services that continue where those of the agent before have ended.

A counter that falls to 0 is taken by Prometheus for one that begins anew, and one that falls to
anything else for one that has counted all of that since. So they continue exactly, or begin at 0.
"""

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gilscope.exporter.samples import Labels, Series
from gilscope.metrics import table as metrics
from gilscope.metrics.family import Family
from gilscope.model.histogram import SLOTS, Histogram
from gilscope.series.by_name.owners import Owner
from gilscope.text.units import NS_PER_S

__all__ = ["KeptCounters"]

Count = float | Histogram

_FAMILIES: Final = {
    family.name: family
    for family in metrics.FAMILIES
    if family.type != "gauge"
    and family.labels[: len(metrics.PROCESS_LABELS)] == metrics.PROCESS_LABELS
}
_KEPT_NS: Final = 3600 * NS_PER_S
"""A service of which nothing was told for so long begins at 0."""


class _Base(NamedTuple):
    """What a counter begins with."""

    told: Count
    since_ns: int
    """Of the epoch."""


class KeptCounters:
    """What the agent before has told, and what this one has. Any thread may call its methods."""

    def __init__(
        self, text: str, began_ns: int, now_ns: Callable[[], int], on_told: Callable[[], bool]
    ) -> None:
        """Continue *text*, of `dumped`; '' begins at 0. Raises ValueError where it is none.

        This agent has begun at *began_ns*; *now_ns* returns the time, of the epoch both. *on_told*
        is called before anything is told that *text* does not know of; where it returns that this
        cannot be noted, all begins at 0.
        """
        self._began_ns = began_ns
        self._now_ns = now_ns
        self._on_told = on_told
        self._turn = threading.Lock()
        self._has_told = self._is_over = False
        self._before: dict[Family, dict[Labels, _Base]] = {}
        self._own: dict[Family, dict[Labels, Count]] = {}
        """What was told last of what was counted since this agent's start."""
        self._told_ns: dict[Owner, int] = {}
        """When any counter of a service was told, of the epoch."""
        self._seen: set[Owner] = set()
        """Services of which this agent has told."""
        if text:
            self._continue(text)

    def add_to(self, families: Mapping[Family, Series]) -> None:
        """Make what is told now of what was counted since the start."""
        told = [families[family] for family in _FAMILIES.values() if family in families]
        with self._turn:
            if self._is_over:
                # The next agent does not know of these, which would have to fall.
                for series in told:
                    series.values, series.histograms = [], []
                return
            at_ns = self._now_ns()
            present = {
                _owner(labels)
                for series in told
                for labels, _ in (*series.values, *series.histograms)
            }
            if not self._has_told:
                self._has_told = True
                if not self._on_told():
                    self._before = {}
            self._forget(
                owner
                for owner in present - self._seen
                if at_ns - self._told_ns.get(owner, at_ns) >= _KEPT_NS
            )
            self._seen |= present
            for series in told:
                self._continue_series(series)
            self._told_ns.update(dict.fromkeys(present, at_ns))

    def forget(self, owners: Collection[Owner]) -> None:
        """Have *owners*, whose counters will begin at 0, begin at 0."""
        with self._turn:
            self._forget(iter(owners))

    def dumped(self) -> str:
        """Return all that was told, for the agent that continues it; nothing is told any more."""
        at_ns = self._now_ns()
        with self._turn:
            self._is_over = True
            told_ns = {owner: ns for owner, ns in self._told_ns.items() if at_ns - ns < _KEPT_NS}
            families = {
                family.name: [
                    [list(labels), _written(base.told), base.since_ns]
                    for labels, base in self._all_of(family)
                    if _owner(labels) in told_ns
                ]
                for family in _FAMILIES.values()
            }
        owners = [[list(owner), ns] for owner, ns in told_ns.items()]
        return json.dumps({"told": owners, "families": families}, separators=(",", ":"))

    def _continue(self, text: str) -> None:
        try:
            document = json.loads(text)
            self._told_ns = {
                tuple(owner): int(told_ns)
                for owner, told_ns in document["told"]
                if self._began_ns - int(told_ns) < _KEPT_NS
            }
            for name, rows in document["families"].items():
                # Another version may have had others.
                if (family := _FAMILIES.get(name)) is not None:
                    self._before[family] = {
                        tuple(labels): _Base(_read(count, family), int(since_ns))
                        for labels, count, since_ns in rows
                        if len(labels) == len(family.labels)
                        and tuple(labels[: len(metrics.PROCESS_LABELS)]) in self._told_ns
                    }
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
            raise ValueError(f"not what was kept: {error!r}") from error

    def _continue_series(self, series: Series) -> None:
        family = series.family
        before = self._before.get(family, {})
        own = self._own.get(family, {})
        now: dict[Labels, Count] = dict((*series.values, *series.histograms))
        # Of this family: what is measured in another way may not be told just now.
        present = {_owner(labels) for labels in now}
        for labels, count in own.items():
            if labels in now:
                if _has_fallen(now[labels], count):
                    before.pop(labels, None)
            elif _owner(labels) in present:
                # It has no series any more, and begins at 0 if it gets one again.
                before.pop(labels, None)
            else:
                now[labels] = count
        self._own[family] = now
        series.values = list(_continued(series.values, before))
        series.histograms = list(_continued(series.histograms, before))
        for labels in before.keys() & {
            labels for labels, _ in (*series.values, *series.histograms)
        }:
            series.begun_ns[labels] = before[labels].since_ns

    def _all_of(self, family: Family) -> Iterator[tuple[Labels, _Base]]:
        before, own = self._before.get(family, {}), self._own.get(family, {})
        for labels, count in _continued(list(own.items()), before):
            base = before.get(labels)
            yield labels, _Base(count, self._began_ns if base is None else base.since_ns)
        for labels, base in before.items():
            # What a service does not tell any more, as lines that its code has no more, would be
            # handed on for ever.
            if labels not in own and _owner(labels) not in self._seen:
                yield labels, base

    def _forget(self, owners: Iterator[Owner]) -> None:
        gone = set(owners)
        if not gone:
            return
        for family in _FAMILIES.values():
            before, own = self._before.get(family, {}), self._own.get(family, {})
            for labels in [labels for labels in {**before, **own} if _owner(labels) in gone]:
                before.pop(labels, None)
                own.pop(labels, None)
        self._seen -= gone
        for owner in gone:
            self._told_ns.pop(owner, None)


def _owner(labels: Labels) -> Owner:
    process, pid, container_id, pod_uid = labels[: len(metrics.PROCESS_LABELS)]
    return process, pid, container_id, pod_uid


def _continued(
    rows: Sequence[tuple[Labels, Any]], before: Mapping[Labels, _Base]
) -> Iterator[tuple[Labels, Any]]:
    for labels, count in rows:
        base = before.get(labels)
        yield labels, count if base is None else base.told + count


def _has_fallen(now: Count, last: Count) -> bool:
    """Return whether it has begun at 0 since: any part of it is less."""
    if isinstance(now, Histogram) and isinstance(last, Histogram):
        return now.sum_ns < last.sum_ns or any(map(int.__lt__, now.slots, last.slots))
    assert not isinstance(now, Histogram)  # noqa: S101 - both are of one family
    assert not isinstance(last, Histogram)  # noqa: S101 - likewise
    return now < last


def _written(count: Count) -> Any:  # noqa: ANN401 - what JSON has
    if not isinstance(count, Histogram):
        return count
    filled = [[slot, here] for slot, here in enumerate(count.slots) if here]
    return [count.sum_ns, filled]


def _read(written: Any, family: Family) -> Count:  # noqa: ANN401 - what JSON has
    if family.type != "histogram":
        return float(written)
    sum_ns, filled = written
    slots = [0] * SLOTS
    for slot, here in filled:
        if not 0 <= slot < SLOTS:
            raise ValueError(f"no histogram has a slot {slot}")
        slots[slot] = int(here)
    return Histogram(slots, int(sum_ns))
