"""Says what threads of a process have waited for since an earlier observation of its locks."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from gilscope.model.locks import LockObservation, LockThread, LockTotals, LockWait, WorldStops
from gilscope.series.since import cost_since

__all__ = ["lock_observation_since"]


def lock_observation_since(now: LockObservation, earlier: LockObservation) -> LockObservation:
    """Return *now* as if the process had been attached to at *earlier*, of the same attachment.

    Both have totals. A wait that was in flight then counts with what it has lasted since; what
    threads that have ended meanwhile had waited for is told as *now* tells it. The longest wait or
    stop of a place is that of all the time, where there was one since.
    """
    assert now.totals is not None  # noqa: S101 - see above
    assert earlier.totals is not None  # noqa: S101 - see above
    return replace(
        now,
        since_ns=earlier.totals.at_ns,
        totals=_totals(now.totals, earlier.totals),
        observed_ns=max(0, now.observed_ns - earlier.observed_ns),
        cost=cost_since(now.cost, earlier.cost),
    )


def _totals(now: LockTotals, earlier: LockTotals) -> LockTotals:
    losses = {
        reason: count - earlier.lost_events.get(reason, 0)
        for reason, count in now.lost_events.items()
    }
    return replace(
        now,
        threads=tuple(sorted(_threads(now, earlier), key=lambda each: -each.contended_ns)),
        stops=tuple(sorted(_stops(now.stops, earlier.stops), key=lambda each: -each.ns)),
        lost_events={reason: count for reason, count in losses.items() if count > 0},
        traps=max(0, now.traps - earlier.traps),
    )


def _threads(now: LockTotals, earlier: LockTotals) -> Iterator[LockThread]:
    before = {thread.tid: {_key(wait): wait for wait in thread.waits} for thread in earlier.threads}
    told = {thread.tid for thread in now.threads}
    # Of those that are not told any more the sum of the ended ones, which is thread 0, has it.
    summed = before.setdefault(0, {})
    for tid in before.keys() - told - {0}:
        for key, wait in before[tid].items():
            summed[key] = _sum(summed[key], wait) if key in summed else wait
    for thread in now.threads:
        waits = tuple(_waits(thread.waits, before.get(thread.tid, {})))
        if waits:
            yield replace(thread, waits=waits)


def _key(wait: LockWait) -> Hashable:
    return wait.kind, wait.type, wait.stack, wait.released, wait.held


def _sum(one: LockWait, other: LockWait) -> LockWait:
    return replace(
        one,
        wait_ns=one.wait_ns + other.wait_ns,
        slept_ns=one.slept_ns + other.slept_ns,
        waits=one.waits + other.waits,
        sleeps=one.sleeps + other.sleeps,
    )


def _waits(now: Iterable[LockWait], earlier: dict[Hashable, LockWait]) -> Iterator[LockWait]:
    for wait in now:
        then = earlier.get(_key(wait))
        # The number of a thread that has ended may be another's by now.
        since = wait if then is None or then.wait_ns > wait.wait_ns else _less(wait, then)
        if since.wait_ns or since.waits:
            yield since


def _less(now: LockWait, earlier: LockWait) -> LockWait:
    wait_ns = now.wait_ns - earlier.wait_ns
    return replace(
        now,
        wait_ns=wait_ns,
        slept_ns=max(0, now.slept_ns - earlier.slept_ns),
        waits=max(0, now.waits - earlier.waits),
        sleeps=max(0, now.sleeps - earlier.sleeps),
        longest_ns=min(now.longest_ns, wait_ns),
    )


def _stops(now: Iterable[WorldStops], earlier: Iterable[WorldStops]) -> Iterator[WorldStops]:
    before = {(each.cause, each.stack): each for each in earlier}
    for stops in now:
        then = before.get((stops.cause, stops.stack))
        since = stops if then is None else _stops_less(stops, then)
        # One that had begun before has counted then, and what it takes counts as it goes by.
        if since.stops or since.ns:
            yield since


def _stops_less(now: WorldStops, earlier: WorldStops) -> WorldStops:
    stopping_ns = max(0, now.stopping_ns - earlier.stopping_ns)
    standing_ns = max(0, now.standing_ns - earlier.standing_ns)
    return replace(
        now,
        stops=max(0, now.stops - earlier.stops),
        stopping_ns=stopping_ns,
        standing_ns=standing_ns,
        longest_ns=min(now.longest_ns, stopping_ns + standing_ns),
    )
