"""Turns the records of the probe's maps into totals; the one place that knows what they mean."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gilscope.gil.losses import Loss
from gilscope.histogram import EMPTY, Histogram
from gilscope.model import (
    Cause,
    Gil,
    GilTotals,
    Kind,
    ProcessTotals,
    Record,
    Tally,
    ThreadTotals,
)

__all__ = [
    "RawProcess",
    "RawTotals",
    "has_exited",
    "process_totals",
    "sorted_losses",
    "thread_totals",
    "unknown_gils",
]

_DROP_LATENCY = 3
"""``enum quantity``: 0 to 2 are waits by cause."""

_CAUSES = tuple(Cause)
_KINDS = tuple(Kind)


@dataclass(slots=True)
class RawProcess:
    """The map records of one process."""

    threads: dict[int, Record] = field(default_factory=dict)
    """By tid."""
    gils: dict[int, Record] = field(default_factory=dict)
    """By address of ``cond``."""
    histograms: dict[tuple[int, int], Record] = field(default_factory=dict)
    """By address of ``cond`` and quantity."""
    lost: dict[Loss, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawTotals:
    """The map records of all processes."""

    at_ns: int
    processes: Mapping[int, RawProcess]
    """By pid."""


def has_exited(record: Record) -> bool:
    """Return whether the thread of *record* has ended."""
    return bool(record["exited_ns"])


def thread_totals(tid: int, record: Record, role: str | None, now_ns: int) -> ThreadTotals:
    """Return the totals of one thread, a wait in flight included up to *now_ns*."""
    lost = [Tally(ns, n) for ns, n in zip(record["wait_ns"], record["waits"], strict=True)]
    kind = Kind.PREEMPTION
    since_ns = record["yield_started_ns"] or record["forced_drop_ns"]
    if record["wait_started_ns"]:
        since_ns = record["wait_started_ns"]
        kind = _kind_so_far(record, now_ns - since_ns)
    waiting_ns = max(0, now_ns - since_ns) if since_ns else 0
    lost[_KINDS.index(kind)] += Tally(waiting_ns)
    return ThreadTotals(
        tid=tid,
        role=role,
        lost=dict(zip(_KINDS, lost, strict=True)),
        drop_requests=record["drop_requests"],
        waiting_ns=waiting_ns,
        is_alive=not has_exited(record),
    )


def _kind_so_far(record: Record, waiting_ns: int) -> Kind:
    kind = _KINDS[record["cause"]]
    if kind is Kind.BLOCKING_CALL and waiting_ns >= record["interval_ns"] > 0:
        return Kind.CONVOY
    return kind


def process_totals(
    raw: RawProcess, now_ns: int, gils: Mapping[int, Gil], roles: Mapping[int, str]
) -> ProcessTotals:
    """Return the totals of one process at *now_ns*.

    *gils* are its locks by address of ``cond``; *roles* are by tid.
    """
    return ProcessTotals(
        at_ns=now_ns,
        threads=tuple(
            thread_totals(tid, record, roles.get(tid), now_ns)
            for tid, record in sorted(raw.threads.items())
        ),
        gils=tuple(
            _gil_totals(raw, gil.cond, gil)
            for gil in sorted(gils.values(), key=lambda gil: gil.interpreter_id)
        ),
        lost_events={loss.value: count for loss, count in sorted_losses(raw.lost)},
    )


def unknown_gils(raw: RawProcess, gils: Iterable[int]) -> list[int]:
    """Return the addresses that were waited on though no GIL of the process is there."""
    return sorted(set(raw.gils) - set(gils))


def sorted_losses(lost: Mapping[Loss, int]) -> list[tuple[Loss, int]]:
    """Return the losses that have occurred, in the order of their numbers."""
    return sorted(
        ((loss, count) for loss, count in lost.items() if count), key=lambda item: item[0].number
    )


def _gil_totals(raw: RawProcess, cond: int, gil: Gil) -> GilTotals:
    # Nobody has waited yet for a lock that the probe has no record of.
    record = raw.gils.get(cond, defaultdict(int))
    return GilTotals(
        gil=gil,
        interval_ns=record["interval_ns"],
        waits={
            cause: _histogram(raw.histograms.get((cond, number)))
            for number, cause in enumerate(_CAUSES)
        },
        drop_latency=_histogram(raw.histograms.get((cond, _DROP_LATENCY))),
        convoy_waits=record["convoy_waits"],
        forced_switches=record["forced_switches"],
        drop_requests=record["drop_requests"],
    )


def _histogram(record: Record | None) -> Histogram:
    return EMPTY if record is None else Histogram(record["slots"], record["sum_ns"])
