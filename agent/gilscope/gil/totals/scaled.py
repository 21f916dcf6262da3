"""Scales up what was counted in windows of waits to all waits.

Each wait has had the same chance to be seen, whatever its length and place: the share of the time
that windows cover. So each counts for as many as there are for one that is seen. What was counted
under one share is not touched by the next: it is the growth of each figure that is scaled, from one
read to the next.

What is told of single requests is what was seen of them: nobody has waited fifty times for one.
"""

from collections.abc import Mapping, MutableMapping
from dataclasses import field, replace
from typing import Any, Final, TypeVar

from gilscope.gil.totals.raw import RawEdge, RawProcess, Taken
from gilscope.model.histogram import Histogram
from gilscope.values import Record, dataclass

__all__ = ["ScaledCounts"]

_Key = TypeVar("_Key")
_Entry = TypeVar("_Entry")

_UNIT: Final = 1 << 16
"""Of weights, which are kept as integers: nothing is lost however long it goes."""

_OF_THREAD = ("drop_requests", "failed_wakeups", "failed_wakeup_wait_ns")
_OF_GIL = ("convoy_waits", "forced_switches", "drop_requests")


@dataclass(slots=True)
class _Sums:
    """The figures of one entry of a table."""

    raw: tuple[int, ...]
    """When it was read last."""
    scaled: list[int]
    """In units."""


@dataclass(slots=True)
class ScaledCounts:
    """What was counted of one process, and what it stands for. All counts for itself at first."""

    weight: float = 1.0
    """How many waits one stands for that is seen from now on; to be set after a read."""
    is_used: bool = False
    """Whether it has ever stood for more than itself; before that, nothing has to be scaled."""
    _tables: dict[str, dict[Any, _Sums]] = field(default_factory=dict)

    def scale(self, raw: RawProcess) -> RawProcess:
        """Return *raw*, which is younger than all before, with what it stands for."""
        threads = {
            tid: self._thread(tid, record)
            for tid, record in self._living("threads", raw.threads).items()
        }
        gils = {
            cond: self._record("gils", cond, record, _OF_GIL)
            for cond, record in self._living("gils", raw.gils).items()
        }
        histograms = {
            key: self._histogram(key, histogram)
            for key, histogram in self._living("histograms", raw.histograms).items()
        }
        taken = Taken(traces=raw.taken.traces, held_traces=raw.taken.held_traces)
        return replace(
            raw,
            threads=threads,
            gils=gils,
            histograms=histograms,
            edges=self._edges("edges", raw.edges, raw.taken.edges, taken.edges),
            slow_drops=self._edges(
                "slow_drops", raw.slow_drops, raw.taken.slow_drops, taken.slow_drops
            ),
            taken=taken,
        )

    def _living(self, table: str, entries: Mapping[_Key, _Entry]) -> Mapping[_Key, _Entry]:
        """Return *entries*, and forget what has left their table."""
        known = self._tables.setdefault(table, {})
        for key in known.keys() - entries.keys():
            del known[key]
        return entries

    def _grow(self, table: str, key: object, raw: tuple[int, ...]) -> _Sums:
        """Return the figures of an entry, which have come to *raw*."""
        known = self._tables.setdefault(table, {})
        sums = known.get(key)
        if sums is None or any(now < before for now, before in zip(raw, sums.raw, strict=True)):
            # Somebody else's, who got its place.
            sums = known[key] = _Sums((0,) * len(raw), [0] * len(raw))
        weight = round(self.weight * _UNIT)
        for at, (now, before) in enumerate(zip(raw, sums.raw, strict=True)):
            if now != before:
                sums.scaled[at] += weight * (now - before)
        sums.raw = raw
        return sums

    def _whole(self, table: str, key: object, raw: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(each // _UNIT for each in self._grow(table, key, raw).scaled)

    def _record(self, table: str, key: object, record: Record, names: tuple[str, ...]) -> Record:
        figures = self._whole(table, key, tuple(record[name] for name in names))
        return {**record, **dict(zip(names, figures, strict=True))}

    def _thread(self, tid: int, record: Record) -> Record:
        kinds = len(record["waits"])
        raw = (*record["wait_ns"], *record["waits"], *(record[name] for name in _OF_THREAD))
        figures = self._whole("threads", tid, raw)
        return {
            **record,
            "wait_ns": figures[:kinds],
            "waits": figures[kinds : 2 * kinds],
            **dict(zip(_OF_THREAD, figures[2 * kinds :], strict=True)),
        }

    def _histogram(self, key: object, histogram: Histogram) -> Histogram:
        slots = tuple(histogram.slots)
        *scaled, sum_ns = self._whole("histograms", key, (*slots, histogram.sum_ns))
        return Histogram(tuple(scaled), sum_ns)

    def _edges(
        self,
        table: str,
        entries: Mapping[_Key, RawEdge],
        taken: Mapping[_Key, RawEdge],
        scaled_taken: MutableMapping[_Key, RawEdge],
    ) -> dict[_Key, RawEdge]:
        """Return *entries* scaled, and put what has been *taken* out of the table into its place.

        A key may be in both: its entry has been taken, and there is a new one.
        """
        for key, edge in taken.items():
            left = _figures(entries[key]) if key in entries else (0, 0)
            scaled_taken[key] = self._without(table, key, left, edge)
        return {
            key: self._edge(table, key, edge) for key, edge in self._living(table, entries).items()
        }

    def _edge(self, table: str, key: object, edge: RawEdge) -> RawEdge:
        ns, count = self._whole(table, key, _figures(edge))
        return RawEdge(ns, count, edge.longest_ns)

    def _without(self, table: str, key: object, left: tuple[int, int], taken: RawEdge) -> RawEdge:
        """Return what *taken* stands for, which has left an entry that has *left* now."""
        gone = _figures(taken)
        both = tuple(one + other for one, other in zip(left, gone, strict=True))
        sums = self._grow(table, key, both)
        # Whole nanoseconds leave; what is less stays with the entry.
        parts = [
            whole * part // max(1, all_of_it) // _UNIT
            for whole, part, all_of_it in zip(sums.scaled, gone, both, strict=True)
        ]
        sums.scaled = [whole - part * _UNIT for whole, part in zip(sums.scaled, parts, strict=True)]
        sums.raw = left
        return RawEdge(parts[0], parts[1], taken.longest_ns)


def _figures(edge: RawEdge) -> tuple[int, int]:
    return edge.ns, edge.count
