"""Turns runs into ratios against the untraced runs around them, and those into median and range.

Whole runs are compared, not their medians: what comes and goes, as the windows of auto mode do,
must count for as much as it costs.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.conditions import AGAIN, BASELINE, Condition
from bench.measurement import Piece, Run
from bench.works import Work

__all__ = [
    "Overhead",
    "Spread",
    "added_ns_per_unit",
    "added_ns_per_wait",
    "latency_ratios",
    "noise",
    "ns_per_unit",
    "overheads",
    "ratios",
    "spread",
    "stands_out",
    "switch_ratios",
    "switches_per_unit",
    "unevenness",
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


@dataclass(frozen=True, slots=True)
class Overhead:
    """What one traced run cost, as a share of the CPU time of the same work untraced."""

    measured: float
    estimated: float
    """By gilscope itself."""


def spread(values: Iterable[float]) -> Spread:
    """Return the median and the range of *values*, of which there is at least one."""
    all_values = list(values)
    return Spread(statistics.median(all_values), min(all_values), max(all_values))


def ns_per_unit(*runs: Run) -> float:
    """Return the CPU time of a unit of work, over all pieces of *runs*."""
    spent_ns = sum(piece.cpu_ns for run in runs for piece in run.pieces)
    return spent_ns / sum(run.units * len(run.pieces) for run in runs)


def ratios(runs: Sequence[Run], work: Work, condition: Condition) -> list[float]:
    """Return for each round the CPU time under *condition* by that under none."""
    return [ns_per_unit(run) / base_ns for run, base_ns in _with_base(runs, work, condition)]


def noise(runs: Sequence[Run], work: Work) -> float:
    """Return how far from 1.0 the ratio of untraced runs reaches."""
    return spread(ratios(runs, work, AGAIN)).reach_from_one()


def latency_ratios(
    runs: Sequence[Run], work: Work, condition: Condition, latency_ns: Callable[[Piece], int]
) -> list[float]:
    """Return for each round the median latency under *condition* by that under none."""

    def median_ns(*of: Run) -> float:
        return statistics.median(latency_ns(piece) for run in of for piece in run.pieces)

    return [median_ns(run) / median_ns(*around) for run, around in _pairs(runs, work, condition)]


def switches_per_unit(*runs: Run) -> float:
    """Return how often the target's threads were taken off a CPU for a unit of work."""
    return sum(run.switches for run in runs) / sum(run.units * len(run.pieces) for run in runs)


def switch_ratios(runs: Sequence[Run], work: Work, condition: Condition) -> list[float]:
    """Return for each round the context switches under *condition* by those under none."""
    return [
        switches_per_unit(run) / switches_per_unit(*around)
        for run, around in _pairs(runs, work, condition)
    ]


def added_ns_per_unit(runs: Sequence[Run], work: Work, condition: Condition) -> list[float]:
    """Return for each round the CPU time that *condition* adds to a unit of work."""
    return [ns_per_unit(run) - base_ns for run, base_ns in _with_base(runs, work, condition)]


def added_ns_per_wait(
    runs: Sequence[Run], work: Work, condition: Condition, counted_by: Condition
) -> list[float]:
    """Return for each round what *condition* adds for each event that *counted_by* saw in it."""
    per_unit = {
        run.round: run.agent.seen / len(run.pieces) / run.units
        for run in runs
        if run.agent and (run.workload, run.condition) == (work.key, counted_by.key)
    }
    return [
        (ns_per_unit(run) - base_ns) / per_unit[run.round]
        for run, base_ns in _with_base(runs, work, condition)
        if per_unit.get(run.round)
    ]


def overheads(runs: Sequence[Run], work: Work, condition: Condition) -> list[Overhead]:
    """Return for each round what it cost and what gilscope thinks that it cost, if it does."""
    found = []
    for run, base_ns in _with_base(runs, work, condition):
        estimated_ns = run.agent.report.overhead_ns if run.agent and run.agent.report else None
        if estimated_ns is not None:
            work_ns = base_ns * run.units * len(run.pieces)
            spent_ns = sum(piece.cpu_ns for piece in run.pieces)
            found.append(Overhead(spent_ns / work_ns - 1, estimated_ns / work_ns))
    return found


def unevenness(runs: Sequence[Run], work: Work, condition: Condition) -> list[float]:
    """Return for each run how much more its mean piece took than its median one, as a share."""
    pieces_ns = [
        [piece.cpu_ns for piece in run.pieces]
        for run in runs
        if (run.workload, run.condition) == (work.key, condition.key)
    ]
    return [statistics.mean(each) / statistics.median(each) - 1 for each in pieces_ns]


def stands_out(runs: Sequence[Run], work: Work, condition: Condition) -> bool:
    """Return whether *condition* added more than the noise in every round."""
    found = ratios(runs, work, condition)
    return bool(found) and min(found) - 1 > noise(runs, work)


def _with_base(
    runs: Sequence[Run], work: Work, condition: Condition
) -> Iterator[tuple[Run, float]]:
    for run, around in _pairs(runs, work, condition):
        yield run, ns_per_unit(*around)


def _pairs(
    runs: Sequence[Run], work: Work, condition: Condition
) -> Iterator[tuple[Run, tuple[Run, Run]]]:
    """Yield the runs under *condition* with the untraced ones just before and behind them."""
    untraced = {
        (run.round, run.turn): run
        for run in runs
        if (run.workload, run.condition) == (work.key, BASELINE.key)
    }
    for run in runs:
        if (run.workload, run.condition) == (work.key, condition.key):
            before, behind = (untraced[run.round, run.turn + step] for step in (-1, 1))
            yield run, (before, behind)
