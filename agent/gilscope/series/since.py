"""Says what a process has done since an earlier observation of it: sums less earlier sums."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from gilscope.model.gil import (
    Edge,
    GilObservation,
    GilTotals,
    HeldBy,
    HeldUp,
    HolderSamples,
    HoldTotals,
    ProcessTotals,
    SlowDrop,
    Tally,
    ThreadTotals,
    TracingCost,
)
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Stack
from gilscope.series.requests.since import traces_since

__all__ = ["cost_since", "observation_since"]

_Value = TypeVar("_Value")


def observation_since(now: GilObservation, earlier: GilObservation) -> GilObservation:
    """Return *now* as if the process had been attached to at *earlier*, of the same attachment.

    A wait or hold that was in flight then counts with what it has lasted since. Of threads that
    have ended meanwhile the sums of their roles are known, and not which of them it was.
    """
    return replace(
        now, since_ns=earlier.totals.at_ns, totals=_totals_since(now.totals, earlier.totals)
    )


def cost_since(now: TracingCost | None, earlier: TracingCost | None) -> TracingCost | None:
    """Return *now* less *earlier*; as it is where one of them is not known."""
    if now is None or earlier is None:
        return now
    is_known = now.used_ns is not None and earlier.used_ns is not None
    used_ns = max(0, (now.used_ns or 0) - (earlier.used_ns or 0))
    return replace(
        now,
        overhead_ns=max(0, now.overhead_ns - earlier.overhead_ns),
        traps=max(0, now.traps - earlier.traps),
        used_ns=used_ns if is_known else None,
        waits_unseen_ns=max(0, now.waits_unseen_ns - earlier.waits_unseen_ns),
    )


def _totals_since(now: ProcessTotals, earlier: ProcessTotals) -> ProcessTotals:
    gils = {gil.gil: gil for gil in earlier.gils}
    losses = {
        reason: count - earlier.lost_events.get(reason, 0)
        for reason, count in now.lost_events.items()
    }
    return replace(
        now,
        threads=tuple(_threads(now.threads, earlier.threads)),
        gils=tuple(_gil(gil, gils[gil.gil]) if gil.gil in gils else gil for gil in now.gils),
        lost_events={reason: count for reason, count in losses.items() if count > 0},
        edges=tuple(_edges(now.edges, earlier.edges)),
        slow_drops=tuple(_slow_drops(now.slow_drops, earlier.slow_drops)),
        observed_ns=_less_ns(now.observed_ns, earlier.observed_ns),
        throttled_ns=_of_both(_gap, now.throttled_ns, earlier.throttled_ns),
        cost=cost_since(now.cost, earlier.cost),
        holder_samples=_of_both(_samples, now.holder_samples, earlier.holder_samples),
        held_up=tuple(_held_up(now.held_up, earlier.held_up)),
        traces=_of_both(traces_since, now.traces, earlier.traces),
    )


def _threads(
    now: Iterable[ThreadTotals], earlier: Iterable[ThreadTotals]
) -> Iterator[ThreadTotals]:
    alive = {thread.tid: thread for thread in earlier if thread.is_alive}
    ended: dict[str | None, list[ThreadTotals]] = defaultdict(list)
    for thread in earlier:
        if not thread.is_alive:
            ended[thread.role].append(thread)
    sums = []
    for thread in now:
        before = alive.get(thread.tid) if thread.is_alive else None
        if not thread.is_alive:
            sums.append(thread)
        elif before is None or before.wait_ns > thread.wait_ns:
            yield thread  # a new one, with the number of one that has ended, if it is not the first
        else:
            del alive[thread.tid]
            yield _thread(thread, (before,))
    # Who was alive then and is not there any more is in the sum of its role now.
    for thread in alive.values():
        ended[thread.role].append(thread)
    for thread in sums:
        left = _thread(thread, ended.pop(thread.role, ()))
        if left.wait_ns or left.waits or (left.held is not None and left.held.ns):
            yield left


def _thread(now: ThreadTotals, earlier: Iterable[ThreadTotals]) -> ThreadTotals:
    before = tuple(earlier)
    lost = {
        kind: _less(tally, sum((each.lost[kind] for each in before), start=Tally()))
        for kind, tally in now.lost.items()
    }
    held = sum((each.held for each in before if each.held is not None), start=Tally())
    asked = now.drop_requests - sum(each.drop_requests for each in before)
    return replace(
        now,
        lost=lost,
        drop_requests=max(0, asked),
        failed_wakeups=_less(
            now.failed_wakeups, sum((each.failed_wakeups for each in before), start=Tally())
        ),
        held=None if now.held is None else _less(now.held, held),
    )


def _gil(now: GilTotals, earlier: GilTotals) -> GilTotals:
    return replace(
        now,
        waits={cause: waits - earlier.waits[cause] for cause, waits in now.waits.items()},
        drop_latency=now.drop_latency - earlier.drop_latency,
        convoy_waits=now.convoy_waits - earlier.convoy_waits,
        forced_switches=now.forced_switches - earlier.forced_switches,
        drop_requests=now.drop_requests - earlier.drop_requests,
        holds=_of_both(_holds, now.holds, earlier.holds),
        held_ns=_less_ns(now.held_ns, earlier.held_ns),
    )


def _holds(now: HoldTotals, earlier: HoldTotals) -> HoldTotals:
    return replace(
        now,
        finished=now.finished - earlier.finished,
        switch_latency=now.switch_latency - earlier.switch_latency,
        held_ns=max(0, now.held_ns - earlier.held_ns),
    )


def _edges(now: Iterable[Edge], earlier: Iterable[Edge]) -> Iterator[Edge]:
    before = _tallies(earlier)
    found = (
        Edge(*ends, _less(lost, before.get(ends, Tally()))) for ends, lost in _tallies(now).items()
    )
    yield from sorted((edge for edge in found if edge.lost.ns), key=lambda edge: -edge.lost.ns)


def _tallies(edges: Iterable[Edge]) -> Mapping[tuple[Kind, Stack, Stack], Tally]:
    return {(edge.kind, edge.waiter, edge.holder): edge.lost for edge in edges}


def _slow_drops(now: Iterable[SlowDrop], earlier: Iterable[SlowDrop]) -> Iterator[SlowDrop]:
    before = {drop.holder: drop for drop in earlier}
    found = [
        _slow_drop(drop, before[drop.holder]) if drop.holder in before else drop for drop in now
    ]
    yield from sorted(
        (drop for drop in found if drop.drop_latency.ns), key=lambda drop: -drop.drop_latency.ns
    )


def _slow_drop(now: SlowDrop, earlier: SlowDrop) -> SlowDrop:
    latency = _less(now.drop_latency, earlier.drop_latency)
    if earlier.in_flight_ns:
        # One that was in flight then has ended since, or still is: it is one of now as well.
        latency = Tally(latency.ns, latency.count + 1)
    # Of the longest one it is known only that no later one was longer, unless it is later itself.
    return replace(now, drop_latency=latency, longest_ns=min(now.longest_ns, latency.ns))


def _samples(now: HolderSamples, earlier: HolderSamples) -> HolderSamples:
    before = {(held.holder, held.state): held for held in earlier.holders}
    nothing = HeldBy(UNKNOWN_STACK, 0)
    found = (
        _held_since(held, before.get((held.holder, held.state), nothing)) for held in now.holders
    )
    return HolderSamples(
        now.samples - earlier.samples,
        now.sampled_ns - earlier.sampled_ns,
        tuple(sorted((held for held in found if held.held_ns > 0), key=lambda each: -each.held_ns)),
    )


def _held_since(now: HeldBy, earlier: HeldBy) -> HeldBy:
    # What has turned out to be in another state since has gone from this one.
    return replace(
        now,
        held_ns=now.held_ns - earlier.held_ns,
        waited_ns=max(0, now.waited_ns - earlier.waited_ns),
    )


def _held_up(now: Iterable[HeldUp], earlier: Iterable[HeldUp]) -> Iterator[HeldUp]:
    before = {(each.holder, each.kind, each.state): each.ns for each in earlier}
    found = (
        replace(each, ns=each.ns - before.get((each.holder, each.kind, each.state), 0))
        for each in now
    )
    yield from sorted((each for each in found if each.ns > 0), key=lambda each: -each.ns)


def _of_both(
    less: Callable[[_Value, _Value], _Value], now: _Value | None, earlier: _Value | None
) -> _Value | None:
    return now if now is None or earlier is None else less(now, earlier)


def _gap(now_ns: int, earlier_ns: int) -> int:
    return max(0, now_ns - earlier_ns)


def _less(now: Tally, earlier: Tally) -> Tally:
    return Tally(max(0, now.ns - earlier.ns), max(0, now.count - earlier.count))


def _less_ns(now: int | None, earlier: int | None) -> int | None:
    return None if now is None else max(0, now - (earlier or 0))
