"""Turns runs into ratios against the same round's baseline, and those into a median and a range."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.measurement import Run

__all__ = [
    "Spread",
    "added_ns_per_event",
    "added_ns_per_unit",
    "ns_per_unit",
    "ratios",
    "spread",
]


@dataclass(frozen=True, slots=True)
class Spread:
    """What became of one quantity over all repeats."""

    median: float
    low: float
    high: float

    def reach_from_one(self) -> float:
        """Return how far from 1.0 the range reaches."""
        return max(abs(self.low - 1.0), abs(self.high - 1.0))


def spread(values: Iterable[float]) -> Spread:
    """Return the median and the range of *values*, of which there is at least one."""
    all_values = list(values)
    return Spread(statistics.median(all_values), min(all_values), max(all_values))


def ns_per_unit(run: Run) -> float:
    """Return the CPU time of a unit of work: the median over the pieces, which a hiccup leaves."""
    return statistics.median(run.piece_cpu_ns) / run.units


def ratios(runs: Sequence[Run], workload: str, condition: str, baseline: str) -> list[float]:
    """Return for each round the CPU time under *condition* by that under *baseline*."""
    return [
        ns_per_unit(run) / ns_per_unit(base)
        for run, base in _pairs(runs, workload, condition, baseline)
    ]


def added_ns_per_unit(
    runs: Sequence[Run], workload: str, condition: str, baseline: str
) -> list[float]:
    """Return for each round the CPU time that *condition* adds to a unit of work."""
    return [
        ns_per_unit(run) - ns_per_unit(base)
        for run, base in _pairs(runs, workload, condition, baseline)
    ]


def added_ns_per_event(
    runs: Sequence[Run], workload: str, condition: str, baseline: str, counted_by: str | None = None
) -> list[float]:
    """Return for each round what *condition* adds for each event that *counted_by* saw in it."""
    seen = {
        run.round: run.agent.seen / len(run.piece_cpu_ns) / run.units
        for run in runs
        if run.agent and (run.workload, run.condition) == (workload, counted_by or condition)
    }
    return [
        (ns_per_unit(run) - ns_per_unit(base)) / seen[run.round]
        for run, base in _pairs(runs, workload, condition, baseline)
    ]


def _pairs(
    runs: Sequence[Run], workload: str, condition: str, baseline: str
) -> list[tuple[Run, Run]]:
    of = {(run.round, run.condition): run for run in runs if run.workload == workload}
    rounds = sorted({number for number, key in of if key == condition})
    return [(of[number, condition], of[number, baseline]) for number in rounds]
