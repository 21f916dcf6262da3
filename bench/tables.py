"""Builds the tables of the page from the results."""

from collections.abc import Callable, Iterable, Sequence

from bench.bars import attach_seconds, judge
from bench.conditions import BASELINE, CONDITIONS, Condition
from bench.measurement import Agent, Results
from bench.ratios import Spread, added_ns_per_unit, ns_per_unit, ratios, spread
from bench.works import TIGHT, WORKS

__all__ = [
    "agent_table",
    "attach_table",
    "bar_table",
    "cost_table",
    "key_table",
    "ranged",
    "seen_table",
    "tight_table",
]

_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000
_BYTES_PER_MB = 1_000_000
_PER_CENT = 100


def ranged(values: Iterable[float], digits: int) -> str:
    """Return the median of *values* and their range, with so many *digits* behind the point."""
    found: Spread = spread(values)
    return f"{found.median:.{digits}f} [{found.low:.{digits}f}..{found.high:.{digits}f}]"


def _measured_conditions(results: Results) -> list[Condition]:
    """Return the conditions that there are runs of, in the order of the tables."""
    keys = {run.condition for run in results.runs}
    return [condition for condition in CONDITIONS if condition.key in keys]


def cost_table(results: Results) -> str:
    """Return the ratios of the target's CPU time for each condition and workload."""
    rows = [
        [
            condition.title,
            *(
                ranged(ratios(results.runs, work.key, condition.key, BASELINE.key), 3)
                for work in WORKS
            ),
        ]
        for condition in _measured_conditions(results)
        if condition is not BASELINE
    ]
    return _table(["traced by", *(work.title for work in WORKS)], rows)


def tight_table(results: Results) -> str:
    """Return what each condition adds to one release and take that nobody waits for."""
    base = [
        ns_per_unit(run)
        for run in results.runs
        if (run.workload, run.condition) == (TIGHT.key, BASELINE.key)
    ]
    rows = [["nothing (the whole pair with its system call)", ranged(base, 0)]]
    rows += [
        [
            f"added by {condition.title}",
            ranged(added_ns_per_unit(results.runs, TIGHT.key, condition.key, BASELINE.key), 0),
        ]
        for condition in _measured_conditions(results)
        if condition is not BASELINE
    ]
    return _table(["", "ns for each pair"], rows)


def agent_table(results: Results) -> str:
    """Return what the tools use themselves, over all workloads."""
    columns: Sequence[tuple[str, int, Callable[[Agent], float]]] = (
        ("attach, s", 2, lambda agent: agent.attach_ns / _NS_PER_S),
        ("CPU to attach, s", 2, lambda agent: agent.attach_cpu_ns / _NS_PER_S),
        ("CPU in a run, ms", 1, lambda agent: agent.cpu_ns / _NS_PER_MS),
        ("CPU, % of a core", 2, lambda agent: _PER_CENT * agent.cpu_ns / agent.wall_ns),
        ("resident, MB", 1, lambda agent: agent.resident_bytes / _BYTES_PER_MB),
        ("proportional (PSS), MB", 1, lambda agent: agent.proportional_bytes / _BYTES_PER_MB),
        ("private, MB", 1, lambda agent: agent.private_bytes / _BYTES_PER_MB),
    )
    rows = []
    for condition in _measured_conditions(results):
        agents = _agents(results, condition)
        if agents:
            cells = [ranged(map(measure, agents), digits) for _, digits, measure in columns]
            rows.append([condition.title, *cells])
    return _table(["tool", *(title for title, _, _ in columns)], rows)


def seen_table(results: Results) -> str:
    """Return how many events each tool counted in a run: the proof that it was at work."""
    rows = []
    for condition in _measured_conditions(results):
        if condition.command is not None:
            counts = [
                [
                    run.agent.seen
                    for run in results.runs
                    if run.agent and (run.workload, run.condition) == (work.key, condition.key)
                ]
                for work in WORKS
            ]
            what = "takes" if condition.sees_every_take else "waits"
            rows.append([f"{condition.title}: {what}", *(ranged(seen, 0) for seen in counts)])
    return _table(["counted in a run", *(work.title for work in WORKS)], rows)


def attach_table(results: Results) -> str:
    """Return how long gilscope takes from its start until the probes are in place."""
    rows = [
        [
            f"`{name}`",
            ranged(attach_seconds(results, name, is_cold=True), 2),
            ranged(attach_seconds(results, name, is_cold=False), 2),
        ]
        for name in dict.fromkeys(each.interpreter for each in results.attaches)
    ]
    return _table(["interpreter", "cold, s", "warm, s"], rows)


def bar_table(results: Results) -> str:
    """Return each bar with its verdict."""
    rows = [
        [bar.figure, bar.bar, bar.measured, "met" if bar.is_met else "**not met**"]
        for bar in judge(results)
    ]
    return _table(["figure", "bar", "measured", ""], rows)


def key_table(rows: Iterable[tuple[str, str]]) -> str:
    """Return names with their values."""
    return _table(["", ""], rows)


def _agents(results: Results, condition: Condition) -> list[Agent]:
    return [run.agent for run in results.runs if run.agent and run.condition == condition.key]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(map(_row, [header, ["---"] * len(header), *rows]))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
