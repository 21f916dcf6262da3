"""Says what the requests of a process have waited since an earlier observation of it."""

from collections.abc import Iterable
from dataclasses import replace

from gilscope.model.traces import RouteWait, TraceHold, TraceHolds, Traces, TraceWait

__all__ = ["routes_since", "traces_since"]


def traces_since(now: Traces, earlier: Traces) -> Traces:
    """Return *now* less *earlier*, of the same process."""
    before = {each.trace_id: each for each in earlier.worst}
    since = (_trace(each, before.get(each.trace_id)) for each in now.worst)
    worst = sorted((each for each in since if each.waits), key=lambda each: -each.wait_ns)
    return replace(
        now,
        # One that had waited before, and has since, is not new.
        number=max(len(worst), now.number - earlier.number),
        wait_ns=max(0, now.wait_ns - earlier.wait_ns),
        waits=max(0, now.waits - earlier.waits),
        worst=tuple(worst),
        routes=routes_since(now.routes, earlier.routes),
        slow_drops=_holds(now.slow_drops, earlier.slow_drops),
        long_holds=_holds(now.long_holds, earlier.long_holds),
    )


def routes_since(now: Iterable[RouteWait], earlier: Iterable[RouteWait]) -> tuple[RouteWait, ...]:
    """Return those of *now* that have waited since *earlier*, the costliest first."""
    before = {each.route: each for each in earlier}
    since = (_route(each, before.get(each.route)) for each in now)
    return tuple(sorted((each for each in since if each.waits), key=lambda each: -each.wait_ns))


def _route(now: RouteWait, earlier: RouteWait | None) -> RouteWait:
    if earlier is None:
        return now
    waits, wait_ns = max(0, now.waits - earlier.waits), max(0, now.wait_ns - earlier.wait_ns)
    return replace(
        now,
        # One that had waited before, and has since, is not new.
        requests=max(min(1, waits), now.requests - earlier.requests),
        wait_ns=wait_ns,
        waits=waits,
        longest_ns=min(now.longest_ns, wait_ns),
    )


def _trace(now: TraceWait, earlier: TraceWait | None) -> TraceWait:
    # One that was forgotten in between is counted anew.
    if earlier is None or earlier.wait_ns > now.wait_ns:
        return now
    wait_ns = now.wait_ns - earlier.wait_ns
    return replace(
        now,
        wait_ns=wait_ns,
        waits=max(0, now.waits - earlier.waits),
        longest_ns=min(now.longest_ns, wait_ns),
    )


def _holds(now: TraceHolds, earlier: TraceHolds) -> TraceHolds:
    before = {each.trace_id: each for each in earlier.worst}
    since = (_hold(each, before.get(each.trace_id)) for each in now.worst)
    worst = sorted((each for each in since if each.times), key=lambda each: -each.ns)
    return replace(
        now,
        ns=max(0, now.ns - earlier.ns),
        times=max(0, now.times - earlier.times),
        worst=tuple(worst),
    )


def _hold(now: TraceHold, earlier: TraceHold | None) -> TraceHold:
    # One that was forgotten in between is counted anew.
    if earlier is None or earlier.ns > now.ns:
        return now
    ns = now.ns - earlier.ns
    return replace(
        now, ns=ns, times=max(0, now.times - earlier.times), longest_ns=min(now.longest_ns, ns)
    )
