"""Turns the records of the probe's maps into totals; the one place that knows what they mean."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import attrgetter

from gilscope.gil.abi import Loss, Quantity
from gilscope.gil.totals.raw import RawLock, RawProcess
from gilscope.model.gil import Gil, GilTotals, HoldTotals, ProcessTotals, Tally, ThreadTotals
from gilscope.model.histogram import EMPTY, Histogram
from gilscope.model.kinds import Cause, Kind
from gilscope.values import Record

__all__ = [
    "blamed_ns",
    "has_exited",
    "holders",
    "kind_so_far",
    "process_totals",
    "sorted_losses",
    "thread_totals",
    "unknown_gils",
    "waiting_since_ns",
]


_KINDS = tuple(sorted(Kind, key=attrgetter("number")))

_NO_RECORD: Record = defaultdict(int, wait_ns=(0,) * len(_KINDS), waits=(0,) * len(_KINDS))


def has_exited(record: Record) -> bool:
    """Return whether the thread of *record* has ended."""
    return bool(record["exited_ns"])


def thread_totals(
    tid: int,
    record: Record,
    role: str | None,
    now_ns: int,
    locks: Mapping[int, RawLock] | None = None,
) -> ThreadTotals:
    """Return the totals of one thread, a wait in flight included up to *now_ns*.

    *locks* are those of its process, None where holds are not seen.
    """
    lost = [Tally(ns, n) for ns, n in zip(record["wait_ns"], record["waits"], strict=True)]
    kind = Kind.PREEMPTION
    since_ns = waiting_since_ns(record)
    if record["wait_started_ns"]:
        kind = kind_so_far(record, now_ns - since_ns)
    waiting_ns = max(0, now_ns - since_ns) if since_ns else 0
    lost[kind.number] += Tally(waiting_ns)
    if record.get("left_out"):
        # It waits all the same, though that counts for nobody.
        waiting_ns = max(0, now_ns - record["left_out_since_ns"])
    return ThreadTotals(
        tid=tid,
        role=role,
        lost=dict(zip(_KINDS, lost, strict=True)),
        drop_requests=record["drop_requests"],
        waiting_ns=waiting_ns,
        held=None if locks is None else _held_by(tid, record, locks.values()),
        is_alive=not has_exited(record),
        failed_wakeups=_failed_wakeups(record, now_ns),
    )


def _failed_wakeups(record: Record, now_ns: int) -> Tally:
    since_ns = record["failed_since_ns"]
    in_flight_ns = max(0, now_ns - since_ns) if since_ns else 0
    return Tally(record["failed_wakeup_wait_ns"] + in_flight_ns, record["failed_wakeups"])


def _held_by(tid: int, record: Record, locks: Iterable[RawLock]) -> Tally:
    held_ns = record["hold_ns"]
    for lock in locks:
        held_ns += lock.credits_ns.get(tid, 0)
        holding = lock.holding
        # The locks are read before the threads: a hold that has ended in between is in the
        # thread's record already.
        if (
            holding is not None
            and holding.tid == tid
            and record["last_hold_began_ns"] < holding.since_ns
        ):
            held_ns += holding.part_ns
    return Tally(held_ns, record["holds"])


def waiting_since_ns(record: Record) -> int:
    """Return since when the thread of *record* waits; 0: it does not."""
    return int(record["wait_started_ns"] or record["yield_started_ns"] or record["forced_drop_ns"])


def blamed_ns(process: RawProcess, now_ns: int) -> int:
    """Return how much waiting time *process* attributes to holders, waits in flight included."""
    in_flight_ns = sum(
        max(0, now_ns - waiting.since_ns) + sum(edge.ns for _, edge in waiting.slices)
        for waiting in process.waiting.values()
    )
    return in_flight_ns + sum(edge.ns for edge in process.edges.values())


def kind_so_far(record: Record, waiting_ns: int) -> Kind:
    """Return what kind the wait in flight of *record* is of, having lasted *waiting_ns*."""
    kind = _KINDS[record["cause"]]
    if kind is Kind.BLOCKING_CALL and waiting_ns >= record["interval_ns"] > 0:
        return Kind.CONVOY
    return kind


def process_totals(
    raw: RawProcess,
    now_ns: int,
    gils: Mapping[int, Gil],
    roles: Mapping[int, str],
    *,
    sees_holds: bool = False,
) -> ProcessTotals:
    """Return the totals of one process at *now_ns*.

    *gils* are its locks by address of ``cond``; *roles* are by tid.
    """
    locks = raw.locks if sees_holds else None
    threads = {tid: raw.threads.get(tid, _NO_RECORD) for tid in {*raw.threads, *holders(raw)}}
    return ProcessTotals(
        at_ns=now_ns,
        threads=tuple(
            thread_totals(tid, record, roles.get(tid), now_ns, locks)
            for tid, record in sorted(threads.items())
        ),
        gils=tuple(
            _gil_totals(raw, gil.cond, gil, now_ns)
            for gil in sorted(gils.values(), key=lambda gil: gil.interpreter_id)
        ),
        lost_events={loss.value: count for loss, count in sorted_losses(raw.lost)},
    )


def holders(raw: RawProcess) -> set[int]:
    """Return the threads that hold a GIL or have held one, whether they have a record or not.

    A thread that has neither waited nor released yet has none.
    """
    tids = {lock.holding.tid for lock in raw.locks.values() if lock.holding is not None}
    for lock in raw.locks.values():
        tids.update(tid for tid, ns in lock.credits_ns.items() if ns)
    return {tid for tid in tids if tid is not None}


def unknown_gils(raw: RawProcess, gils: Iterable[int]) -> list[int]:
    """Return the addresses of locks that were used though no GIL of the process is there."""
    return sorted({*raw.gils, *raw.locks} - set(gils))


def sorted_losses(lost: Mapping[Loss, int]) -> list[tuple[Loss, int]]:
    """Return the losses that have occurred, in the order of their numbers."""
    return sorted(
        ((loss, count) for loss, count in lost.items() if count), key=lambda item: item[0].number
    )


def _gil_totals(raw: RawProcess, cond: int, gil: Gil, now_ns: int) -> GilTotals:
    # Nobody has waited yet for a lock that the probe has no record of.
    record = raw.gils.get(cond, defaultdict(int))
    return GilTotals(
        gil=gil,
        interval_ns=record["interval_ns"],
        waits={cause: raw.histograms.get((cond, cause.number), EMPTY) for cause in Cause},
        drop_latency=raw.histograms.get((cond, Quantity.DROP_LATENCY), EMPTY),
        convoy_waits=record["convoy_waits"],
        forced_switches=record["forced_switches"],
        drop_requests=record["drop_requests"],
        holds=_hold_totals(raw.locks[cond], now_ns) if cond in raw.locks else None,
    )


def _hold_totals(lock: RawLock, now_ns: int) -> HoldTotals:
    record, holding = lock.record, lock.holding
    in_flight_ns = 0 if holding is None else holding.part_ns
    return HoldTotals(
        finished=Histogram(record["hold_slots"], record["hold_sum_ns"]),
        switch_latency=Histogram(record["switch_slots"], record["switch_sum_ns"]),
        held_ns=record["held_ns"] + sum(lock.credits_ns.values()) + in_flight_ns,
        holding_ns=0 if holding is None else max(0, now_ns - holding.since_ns),
    )
