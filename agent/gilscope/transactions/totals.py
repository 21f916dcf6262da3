"""Turns what the kernel's tables hold into totals."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field

from gilscope.model.gil import Tally
from gilscope.model.histogram import Histogram
from gilscope.model.transactions import Library, StmProcess, StmThread, StmTotals
from gilscope.runtimes.stm.numberings import Numbering
from gilscope.text.printable import label
from gilscope.transactions.abi import Collection, RestartReason, Wait
from gilscope.values import Record, dataclass

__all__ = ["OTHER", "RawStm", "busiest_first", "thread_of", "totals_of"]

OTHER = "other"


@dataclass(slots=True)
class RawStm:
    """What the tables hold of one process."""

    at_ns: int
    """CLOCK_MONOTONIC."""
    totals: Record
    threads: dict[int, Record] = field(default_factory=dict)
    """By thread id."""
    reasons: dict[str, int] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    """By return address, where no reason was given."""
    lost: dict[str, int] = field(default_factory=dict)


def totals_of(
    process: StmProcess,
    raw: RawStm,
    threads: tuple[StmThread, ...],
    places: Mapping[str, int],
) -> StmTotals:
    """Return the totals of *process*, with None for what its method does not see.

    *places* are those of *raw* by name.
    """
    record, method = raw.totals, process.method
    is_libitm = process.library is Library.LIBITM
    restarts = record["restarts"]
    return StmTotals(
        at_ns=raw.at_ns,
        commits=record["commits"],
        committed=_histogram(record, "committed") if method.has_commit_times else None,
        aborts=record["aborts"] if method.has_aborts else None,
        aborted=_histogram(record, "aborted") if method.has_abort_costs else None,
        cancels=record["cancels"] if is_libitm else None,
        conflicts=record["conflicts"] if method.has_waits else None,
        waits=_waits(process, record) if method.has_waits else None,
        collections={
            each.name.lower(): Tally(record["collected_ns"][each], record["collected"][each])
            for each in Collection
        }
        if method.has_waits
        else None,
        inevitable=_reasons(raw.reasons, places, record["unnamed"]),
        restarts=_restarts(restarts) if is_libitm and method.has_aborts else None,
        threads=threads,
        lost_events=raw.lost,
        traps=record["traps"],
    )


def thread_of(tid: int, record: Record) -> StmThread:
    """Return the thread *tid*, of which the table holds *record*."""
    return StmThread(
        tid,
        label(record["name"].split(b"\0", 1)[0].decode(errors="replace")),
        Tally(record["committed_ns"], record["commits"]),
        Tally(record["aborted_ns"], record["aborts"]),
    )


def busiest_first(threads: Iterable[StmThread]) -> tuple[StmThread, ...]:
    """Return *threads*, those with the most commits first."""
    return tuple(sorted(threads, key=lambda thread: (-thread.committed.count, thread.tid)))


def _waits(process: StmProcess, record: Record) -> dict[str, Tally]:
    kinds = Numbering[process.numbering or Numbering.E16.name].waits
    return {
        f"STM_WAIT_{kind}": Tally(record["wait_ns"][Wait[kind]], record["waits"][Wait[kind]])
        for kind in kinds
    }


def _histogram(record: Record, name: str) -> Histogram:
    return Histogram(tuple(record[f"{name}_slots"]), record[f"{name}_ns"])


def _reasons(named: Mapping[str, int], places: Mapping[str, int], unnamed: int) -> dict[str, int]:
    # What a program gives as its reasons may differ in what cannot be shown.
    shown = Counter(places)
    for reason, count in named.items():
        shown[label(reason)] += count
    ranked = dict(sorted(shown.items(), key=lambda item: (-item[1], item[0])))
    return ranked | {OTHER: ranked.get(OTHER, 0) + unnamed} if unnamed else ranked


def _restarts(counts: tuple[int, ...]) -> dict[str, int]:
    named = {reason.name: counts[reason] for reason in RestartReason if counts[reason]}
    rest = sum(counts[len(RestartReason) :])
    return named | {OTHER: rest} if rest else named
