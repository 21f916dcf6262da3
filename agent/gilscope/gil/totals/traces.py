"""What the requests of a process have waited: sums by trace, of which the worst are remembered."""

from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

from gilscope.gil.totals.routes import RouteNames, RouteSums, all_of, never_less, told_routes
from gilscope.model.kinds import Cause
from gilscope.model.stack import Stack
from gilscope.model.traces import Traces, TraceWait

__all__ = ["RawTrace", "TraceBook", "trace_id"]

_MOST_OPEN = 4096
"""Traces that may still wait, beside those in the table."""
_MOST_WORST = 100
_CAUSES = {cause.number: cause for cause in Cause}


class RawTrace(NamedTuple):
    """A trace in the kernel's table."""

    wait_ns: int
    waits: int
    longest_ns: int
    longest_ended_ns: int
    longest_span: int
    longest_holder: int
    """A stack, by its id in the probes."""
    longest_cond: int
    longest_cause: int
    route: str = ""
    """Empty: not known."""

    def plus(self, other: "RawTrace") -> "RawTrace":
        """Return both as one trace."""
        longest = self if self.longest_ns >= other.longest_ns else other
        return longest._replace(
            wait_ns=self.wait_ns + other.wait_ns,
            waits=self.waits + other.waits,
            route=self.route or other.route,
        )


class _Kept(NamedTuple):
    """One of which the stack is known for good."""

    raw: RawTrace
    holder: Stack


def trace_id(begin: int, end: int) -> str:
    """Return the id whose halves the probes have read as numbers, in hexadecimal."""
    return (begin.to_bytes(8, "little") + end.to_bytes(8, "little")).hex()


class TraceBook:
    """The traces of one process. Sums never fall."""

    def __init__(self) -> None:
        self._open: dict[str, _Kept] = {}
        """Those that have waited last come last."""
        self._worst: list[tuple[str, _Kept]] = []
        """Of those that are not open any more."""
        self._closed = (0, 0, 0)
        """Their number, time and waits."""
        self._route_names = RouteNames()
        self._closed_routes: dict[str, RouteSums] = {}
        self._shown_routes: dict[str, RouteSums] = {}

    def keep(self, taken: Mapping[str, RawTrace], stack: Callable[[int], Stack]) -> None:
        """Add what has left the table; *stack* tells a stack by its id."""
        for trace, raw in taken.items():
            self._open[trace] = _both(self._open.pop(trace, None), raw, stack)
        surplus = list(self._open)[: max(0, len(self._open) - _MOST_OPEN)]
        closed = [(trace, self._open.pop(trace)) for trace in surplus]
        if closed:
            self._worst = _worst((*self._worst, *closed))
            number, wait_ns, waits = self._closed
            self._closed = (
                number + len(closed),
                wait_ns + sum(kept.raw.wait_ns for _, kept in closed),
                waits + sum(kept.raw.waits for _, kept in closed),
            )
            self._closed_routes = all_of(
                self._route_names,
                self._closed_routes,
                ((kept.raw, kept.holder) for _, kept in closed),
            )

    def traces(
        self, now: Mapping[str, RawTrace], stack: Callable[[int], Stack], clock_offset_ns: int
    ) -> Traces:
        """Return all of them, with those that are in the table *now*.

        *clock_offset_ns* is from the monotonic clock to that of the host.
        """
        every = dict(self._open)
        for trace, raw in now.items():
            every[trace] = _both(every.get(trace), raw, stack)
        number, wait_ns, waits = self._closed
        routes = all_of(
            self._route_names,
            self._closed_routes,
            ((kept.raw, kept.holder) for kept in every.values()),
        )
        self._shown_routes = never_less(routes, self._shown_routes)

        def told(found: Iterable[tuple[str, _Kept]]) -> tuple[TraceWait, ...]:
            return tuple(_told(trace, kept, clock_offset_ns) for trace, kept in found)

        return Traces(
            number + len(every),
            wait_ns + sum(kept.raw.wait_ns for kept in every.values()),
            waits + sum(kept.raw.waits for kept in every.values()),
            worst=told(_worst((*self._worst, *every.items()))),
            routes=told_routes(self._shown_routes),
            recent=told(_recent(every.items())),
        )


def _both(kept: _Kept | None, raw: RawTrace, stack: Callable[[int], Stack]) -> _Kept:
    if kept is None:
        return _Kept(raw, stack(raw.longest_holder))
    holder = kept.holder if kept.raw.longest_ns >= raw.longest_ns else stack(raw.longest_holder)
    return _Kept(kept.raw.plus(raw), holder)


def _worst(traces: Iterable[tuple[str, _Kept]]) -> list[tuple[str, _Kept]]:
    return nlargest(_MOST_WORST, traces, key=lambda each: each[1].raw.wait_ns)


def _recent(traces: Iterable[tuple[str, _Kept]]) -> list[tuple[str, _Kept]]:
    last: dict[tuple[int, int, int], tuple[int, tuple[str, _Kept]]] = {}
    for each in traces:
        raw = each[1].raw
        bucket = (raw.longest_cond, raw.longest_cause, raw.longest_ns.bit_length())
        if bucket not in last or last[bucket][0] < raw.longest_ended_ns:
            last[bucket] = (raw.longest_ended_ns, each)
    return [each for _, each in sorted(last.values(), key=itemgetter(0))]


def _told(trace: str, kept: _Kept, clock_offset_ns: int) -> TraceWait:
    raw = kept.raw
    return TraceWait(
        trace,
        raw.wait_ns,
        raw.waits,
        raw.longest_ns,
        raw.longest_ended_ns + clock_offset_ns,
        raw.longest_span.to_bytes(8, "little").hex(),
        kept.holder,
        _CAUSES[raw.longest_cause],
        raw.longest_cond,
    )
