"""Says what the transactions of a process have done since an earlier observation of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gilscope.model.gil import Tally
from gilscope.model.histogram import Histogram
from gilscope.model.transactions import StmObservation, StmThread, StmTotals
from gilscope.series.since import cost_since

__all__ = ["stm_observation_since"]


def stm_observation_since(now: StmObservation, earlier: StmObservation) -> StmObservation:
    """Return *now* as if the process had been attached to at *earlier*, of the same attachment.

    What the method does not see stays None. Threads that have ended meanwhile are told as *now*
    tells them.
    """
    return replace(
        now,
        since_ns=earlier.totals.at_ns,
        totals=_totals(now.totals, earlier.totals),
        observed_ns=max(0, now.observed_ns - earlier.observed_ns),
        cost=cost_since(now.cost, earlier.cost),
    )


def _totals(now: StmTotals, earlier: StmTotals) -> StmTotals:
    return replace(
        now,
        commits=max(0, now.commits - earlier.commits),
        committed=_histogram(now.committed, earlier.committed),
        aborts=_count(now.aborts, earlier.aborts),
        aborted=_histogram(now.aborted, earlier.aborted),
        cancels=_count(now.cancels, earlier.cancels),
        conflicts=_count(now.conflicts, earlier.conflicts),
        waits=_tallies(now.waits, earlier.waits),
        collections=_tallies(now.collections, earlier.collections),
        inevitable=_counts(now.inevitable, earlier.inevitable),
        restarts=None if now.restarts is None else _counts(now.restarts, earlier.restarts or {}),
        threads=tuple(_threads(now.threads, earlier.threads)),
        lost_events=_counts(now.lost_events, earlier.lost_events),
        traps=max(0, now.traps - earlier.traps),
    )


def _threads(now: Iterable[StmThread], earlier: Iterable[StmThread]) -> Iterator[StmThread]:
    before = {thread.tid: thread for thread in earlier}
    for thread in now:
        then = before.get(thread.tid)
        # The number of one that has ended may be another thread's by now.
        if then is not None and then.committed.count <= thread.committed.count:
            since = replace(
                thread,
                committed=_less(thread.committed, then.committed),
                aborted=_less(thread.aborted, then.aborted),
            )
        else:
            since = thread
        if since.committed.count or since.aborted.count:
            yield since


def _less(now: Tally, earlier: Tally) -> Tally:
    return Tally(max(0, now.ns - earlier.ns), max(0, now.count - earlier.count))


def _count(now: int | None, earlier: int | None) -> int | None:
    return None if now is None else max(0, now - (earlier or 0))


def _histogram(now: Histogram | None, earlier: Histogram | None) -> Histogram | None:
    return now if now is None or earlier is None else now - earlier


def _tallies(
    now: Mapping[str, Tally] | None, earlier: Mapping[str, Tally] | None
) -> Mapping[str, Tally] | None:
    if now is None:
        return None
    before = earlier or {}
    return {name: _less(tally, before.get(name, Tally())) for name, tally in now.items()}


def _counts(now: Mapping[str, int], earlier: Mapping[str, int]) -> Mapping[str, int]:
    found = {name: count - earlier.get(name, 0) for name, count in now.items()}
    return {name: count for name, count in found.items() if count > 0}
