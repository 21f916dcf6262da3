"""In which requests a process kept the lock: sums by trace, of which the worst are remembered."""

from collections.abc import Iterable, Mapping
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

from gilscope.gil.abi import HeldTraceKind
from gilscope.model.traces import TraceHold, TraceHolds
from gilscope.text.printable import label

__all__ = ["HeldKey", "HeldTraceBook", "RawHeldTrace"]

_MOST_OPEN = 4096
"""Traces that may still keep it, beside those in the table."""
_MOST_WORST = 100

HeldKey = tuple[int, str]
"""The number of a `HeldTraceKind`, and the id of a trace."""


class RawHeldTrace(NamedTuple):
    """A trace in the kernel's table, and by what it kept the lock."""

    ns: int
    times: int
    longest_ns: int
    longest_ended_ns: int
    longest_span: int
    longest_cond: int
    route: str = ""
    """Empty: not known."""

    def plus(self, other: "RawHeldTrace") -> "RawHeldTrace":
        """Return both as one trace."""
        longest = self if self.longest_ns >= other.longest_ns else other
        return longest._replace(
            ns=self.ns + other.ns,
            times=self.times + other.times,
            route=self.route or other.route,
        )


class HeldTraceBook:
    """Those of one process. Sums never fall."""

    def __init__(self) -> None:
        self._open: dict[HeldKey, RawHeldTrace] = {}
        """Those that have kept it last come last."""
        self._closed: dict[HeldKey, RawHeldTrace] = {}
        """The worst of those that are not open any more."""
        self._sums = dict.fromkeys(HeldTraceKind, (0, 0))
        """Of all of these, by kind: their time, and how often."""

    def keep(self, taken: Mapping[HeldKey, RawHeldTrace]) -> None:
        """Add what has left the table."""
        for key, raw in taken.items():
            # Which will never be counted: the drop was not slow after all.
            if raw.times:
                known = self._open.pop(key, None)
                self._open[key] = raw if known is None else known.plus(raw)
        surplus = list(self._open)[: max(0, len(self._open) - _MOST_OPEN)]
        for key in surplus:
            raw = self._open.pop(key)
            ns, times = self._sums[HeldTraceKind(key[0])]
            self._sums[HeldTraceKind(key[0])] = (ns + raw.ns, times + raw.times)
            known = self._closed.pop(key, None)
            self._closed[key] = raw if known is None else known.plus(raw)
        if surplus:
            self._closed = {
                key: raw
                for kind in HeldTraceKind
                for key, raw in _worst(_of_kind(self._closed, kind))
            }

    def holds(
        self, now: Mapping[HeldKey, RawHeldTrace], kind: HeldTraceKind, clock_offset_ns: int
    ) -> TraceHolds:
        """Return those of *kind*, with those that are in the table *now*.

        *clock_offset_ns* is from the monotonic clock to that of the host.
        """
        here = [(key, raw) for key, raw in _of_kind(now, kind) if raw.times]
        counted = list(_both(_of_kind(self._open, kind), here).items())
        ns, times = self._sums[kind]

        def told(found: Iterable[tuple[HeldKey, RawHeldTrace]]) -> tuple[TraceHold, ...]:
            return tuple(_told(key[1], raw, clock_offset_ns) for key, raw in found)

        return TraceHolds(
            ns + sum(raw.ns for _, raw in counted),
            times + sum(raw.times for _, raw in counted),
            worst=told(_worst(_both(_of_kind(self._closed, kind), counted).items())),
            recent=told(_recent(counted)),
        )


def _both(
    some: Iterable[tuple[HeldKey, RawHeldTrace]], others: Iterable[tuple[HeldKey, RawHeldTrace]]
) -> dict[HeldKey, RawHeldTrace]:
    every = dict(some)
    for key, raw in others:
        every[key] = every[key].plus(raw) if key in every else raw
    return every


def _of_kind(
    traces: Mapping[HeldKey, RawHeldTrace], kind: HeldTraceKind
) -> list[tuple[HeldKey, RawHeldTrace]]:
    return [(key, raw) for key, raw in traces.items() if key[0] == kind]


def _worst(traces: Iterable[tuple[HeldKey, RawHeldTrace]]) -> list[tuple[HeldKey, RawHeldTrace]]:
    return nlargest(_MOST_WORST, traces, key=lambda each: each[1].ns)


def _recent(traces: Iterable[tuple[HeldKey, RawHeldTrace]]) -> list[tuple[HeldKey, RawHeldTrace]]:
    last: dict[tuple[int, int], tuple[int, tuple[HeldKey, RawHeldTrace]]] = {}
    for each in traces:
        raw = each[1]
        bucket = (raw.longest_cond, raw.longest_ns.bit_length())
        if bucket not in last or last[bucket][0] < raw.longest_ended_ns:
            last[bucket] = (raw.longest_ended_ns, each)
    return [each for _, each in sorted(last.values(), key=itemgetter(0))]


def _told(trace: str, raw: RawHeldTrace, clock_offset_ns: int) -> TraceHold:
    return TraceHold(
        trace,
        label(raw.route) if raw.route else None,
        raw.ns,
        raw.times,
        raw.longest_ns,
        raw.longest_ended_ns + clock_offset_ns,
        raw.longest_span.to_bytes(8, "little").hex(),
        raw.longest_cond,
    )
