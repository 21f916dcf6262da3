"""Builds the tables about the target: its CPU time, its latency, and what gilscope says of both."""

from collections.abc import Callable

from bench.conditions import AGAIN, AUTO, BASELINE, CONDITIONS, CONTENTION, GILSCOPE, Condition
from bench.markdown import NONE, ranged, table
from bench.measurement import Piece, Results
from bench.ratios import (
    added_ns_per_unit,
    latency_ratios,
    noise,
    ns_per_unit,
    overheads,
    ratios,
    spread,
    stands_out,
    switch_ratios,
    switches_per_unit,
    unevenness,
)
from bench.works import HTTP, TIGHT, WORKS, Work

__all__ = [
    "LATENCIES",
    "cost_table",
    "coverage_table",
    "latency_table",
    "measured_conditions",
    "report_table",
    "seen_table",
    "switch_table",
    "tight_table",
    "windows_table",
]

_NS_PER_MS = 1_000_000
_PER_CENT = 100

LATENCIES: tuple[tuple[str, Callable[[Piece], int]], ...] = (
    ("p50", lambda piece: piece.p50_ns),
    ("p99", lambda piece: piece.p99_ns),
)
"""Title and value of each latency that is compared."""


def measured_conditions(results: Results) -> list[Condition]:
    """Return the conditions that there are runs of, in the order of the tables."""
    keys = {run.condition for run in results.runs}
    return [condition for condition in CONDITIONS if condition.key in keys]


def _compared(results: Results) -> list[Condition]:
    return [each for each in measured_conditions(results) if each is not BASELINE]


def cost_table(results: Results) -> str:
    """Return the ratios of the target's CPU time for each condition and workload."""
    rows = [
        [condition.title, *(ranged(ratios(results.runs, work, condition), 3) for work in WORKS)]
        for condition in _compared(results)
    ]
    return table(["traced by", *(work.title for work in WORKS)], rows)


def latency_table(results: Results) -> str:
    """Return the latency that the clients of the HTTP server saw, and its ratios."""
    base = [run for run in results.runs if _is(run.workload, HTTP, run.condition, BASELINE)]
    rows = [
        [
            f"{BASELINE.title}, ms",
            *(
                ranged((of(piece) / _NS_PER_MS for run in base for piece in run.pieces), 1)
                for _, of in LATENCIES
            ),
        ]
    ]
    rows += [
        [
            f"{condition.title}, ratio",
            *(ranged(latency_ratios(results.runs, HTTP, condition, of), 3) for _, of in LATENCIES),
        ]
        for condition in _compared(results)
    ]
    return table(["traced by", *(title for title, _ in LATENCIES)], rows)


def switch_table(results: Results) -> str:
    """Return how often threads of the HTTP server were taken off a CPU, and the ratios to that."""
    base = [run for run in results.runs if _is(run.workload, HTTP, run.condition, BASELINE)]
    rows = [[f"{BASELINE.title}, for each request", ranged(map(switches_per_unit, base), 1)]]
    rows += [
        [f"{condition.title}, ratio", ranged(switch_ratios(results.runs, HTTP, condition), 3)]
        for condition in _compared(results)
    ]
    return table(["traced by", "context switches"], rows)


def tight_table(results: Results) -> str:
    """Return what each condition adds to one release and acquire that nobody waits for."""
    base = [
        ns_per_unit(run)
        for run in results.runs
        if _is(run.workload, TIGHT, run.condition, BASELINE)
    ]
    rows = [["nothing (the whole pair with its system call)", ranged(base, 0)]]
    rows += [
        [
            f"added by {condition.title}",
            ranged(added_ns_per_unit(results.runs, TIGHT, condition), 0),
        ]
        for condition in _compared(results)
    ]
    return table(["", "ns for each pair"], rows)


def report_table(results: Results) -> str:
    """Return what gilscope thinks that it costs, beside what it was measured to cost."""
    rows = []
    for condition in GILSCOPE:
        for work in WORKS:
            found = overheads(results.runs, work, condition)
            if found:
                measured = [_PER_CENT * each.measured for each in found]
                estimated = [_PER_CENT * each.estimated for each in found]
                floor = noise(results.runs, work)
                quotient = NONE
                if stands_out(results.runs, work, condition):
                    quotient = f"{spread(estimated).median / spread(measured).median:.2f}"
                rows.append(
                    [
                        condition.title,
                        work.title,
                        ranged(measured, 2),
                        f"{_PER_CENT * floor:.2f}",
                        ranged(estimated, 2),
                        quotient,
                    ]
                )
    header = ["mode", "workload", "measured, %", "noise, %", "self-reported, %", "quotient"]
    return table(header, rows)


def coverage_table(results: Results) -> str:
    """Return for how much of the time gilscope followed every hold, and how many it saw a run."""
    rows = []
    for condition in GILSCOPE:
        cells = [_coverage(results, work, condition) for work in WORKS]
        if any(cell != NONE for cell in cells):
            rows.append([condition.title, *cells])
    return table(["% of the time; holds in a run", *(work.title for work in WORKS)], rows)


def windows_table(results: Results) -> str:
    """Return what comes and goes within the runs of the tight loop."""
    rows = [
        [condition.title, ranged([_PER_CENT * each for each in found], 1)]
        for condition in (BASELINE, CONTENTION, *AUTO)
        if (found := unevenness(results.runs, TIGHT, condition))
    ]
    return table(["traced by", "mean piece above the median one, %"], rows)


def _coverage(results: Results, work: Work, condition: Condition) -> str:
    reports = [
        run.agent.report
        for run in results.runs
        if run.agent and run.agent.report and _is(run.workload, work, run.condition, condition)
    ]
    shares = [_PER_CENT * each.observed_ns / each.elapsed_ns for each in reports if each.elapsed_ns]
    if not shares:
        return NONE
    return f"{ranged(shares, 1)}; {spread(each.holds for each in reports).median:.0f}"


def seen_table(results: Results) -> str:
    """Return how many events each tool counted in a run: the proof that it was at work."""
    rows = []
    for condition in _compared(results):
        if condition is not AGAIN:
            counts = [
                [
                    run.agent.seen
                    for run in results.runs
                    if run.agent and _is(run.workload, work, run.condition, condition)
                ]
                for work in WORKS
            ]
            cells = (ranged(seen, 0) for seen in counts)
            rows.append([f"{condition.title}: {condition.counts}", *cells])
    return table(["counted in a run", *(work.title for work in WORKS)], rows)


def _is(workload: str, work: Work, condition_key: str, condition: Condition) -> bool:
    return (workload, condition_key) == (work.key, condition.key)
