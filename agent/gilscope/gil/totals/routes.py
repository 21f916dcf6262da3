"""What the requests of a process have waited, summed up by their routes."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Protocol

from gilscope.model.stack import UNKNOWN_STACK, Stack
from gilscope.model.traces import RouteWait
from gilscope.text.printable import label
from gilscope.values import dataclass

__all__ = ["RouteNames", "RouteSums", "all_of", "never_less", "told_routes"]

_OTHERS = "other"
"""What further ones are called."""

_MOST_ROUTES = 100
"""A program may publish paths for routes, with ever new numbers in them."""
_MOST_HOLDERS = 50
"""Of one route, by which they are told apart."""


class _Trace(Protocol):
    @property
    def route(self) -> str: ...
    @property
    def wait_ns(self) -> int: ...
    @property
    def waits(self) -> int: ...
    @property
    def longest_ns(self) -> int: ...


class RouteNames:
    """What the routes of one process are called: the first have names for good, others share one.

    So what is shown of them is bounded, in whatever order their requests come.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, route: str) -> str:
        """Return the name of *route*; of none it is empty."""
        name = self._names.get(route) if route else ""
        if name is None:
            if len(self._names) >= _MOST_ROUTES:
                return _OTHERS
            name = self._names[route] = label(route)
        return name


@dataclass(slots=True)
class RouteSums:
    """What the requests of one route have waited."""

    requests: int = 0
    wait_ns: int = 0
    waits: int = 0
    longest_ns: int = 0
    holders_ns: dict[Stack, int] = field(default_factory=dict)
    """Time of their longest waits, by the stack behind which these began."""

    def add(self, trace: _Trace, holder: Stack) -> None:
        """Count one request."""
        self.requests += 1
        self.wait_ns += trace.wait_ns
        self.waits += trace.waits
        self.longest_ns = max(self.longest_ns, trace.longest_ns)
        if holder in self.holders_ns or len(self.holders_ns) < _MOST_HOLDERS:
            self.holders_ns[holder] = self.holders_ns.get(holder, 0) + trace.longest_ns


def all_of(
    names: RouteNames,
    earlier: Mapping[str, RouteSums],
    traces: Iterable[tuple[_Trace, Stack]],
) -> dict[str, RouteSums]:
    """Return *earlier* sums by route with those of *traces*, each with who held it up most."""
    sums = {
        route: replace(each, holders_ns=dict(each.holders_ns)) for route, each in earlier.items()
    }
    for trace, holder in traces:
        route = names.of(trace.route)
        if route not in sums:
            sums[route] = RouteSums()
        sums[route].add(trace, holder)
    return sums


def never_less(now: dict[str, RouteSums], shown: Mapping[str, RouteSums]) -> dict[str, RouteSums]:
    """Return *now*, but of each route no less than was *shown*: who reads sums expects that.

    Only those without a route may become fewer: a request may be told its route late.
    """
    for route, before in shown.items():
        if not route:
            continue
        each = now.setdefault(route, before)
        each.requests = max(each.requests, before.requests)
        each.wait_ns = max(each.wait_ns, before.wait_ns)
        each.waits = max(each.waits, before.waits)
        each.longest_ns = max(each.longest_ns, before.longest_ns)
    return now


def told_routes(sums: Mapping[str, RouteSums]) -> tuple[RouteWait, ...]:
    """Return *sums*, the costliest first; nothing where no request has a route."""
    if not any(sums):
        return ()
    told = (
        RouteWait(
            route or None,
            each.requests,
            each.wait_ns,
            each.waits,
            each.longest_ns,
            _holder(each.holders_ns),
        )
        for route, each in sums.items()
        if each.waits
    )
    return tuple(sorted(told, key=lambda each: -each.wait_ns))


def _holder(holders_ns: Mapping[Stack, int]) -> Stack:
    # Where the budget allows the stacks of some waits only, others do not say behind whom.
    known = {stack: ns for stack, ns in holders_ns.items() if stack.frames}
    return max(known, key=lambda stack: known[stack], default=UNKNOWN_STACK)
