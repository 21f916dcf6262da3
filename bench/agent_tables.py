"""Builds the tables about the agent: what it uses, for one process and for many, and its bars."""

from collections.abc import Callable, Iterable, Sequence

from bench.bars import attach_seconds, judge
from bench.conditions import CONDITIONS
from bench.markdown import NONE, ranged, table
from bench.measurement import Agent, Crowd, Results
from bench.tables import measured_conditions

__all__ = ["agent_table", "attach_table", "bar_table", "crowd_table", "parts_table", "start_table"]

_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000
_BYTES_PER_KB = 1_000
_BYTES_PER_MB = 1_000_000
_PER_CENT = 100

_AGENT_COLUMNS: Sequence[tuple[str, int, Callable[[Agent], float]]] = (
    ("attach, s", 2, lambda agent: agent.attach_ns / _NS_PER_S),
    ("CPU to attach, s", 2, lambda agent: agent.attach_cpu_ns / _NS_PER_S),
    ("CPU in a run, ms", 1, lambda agent: agent.cpu_ns / _NS_PER_MS),
    ("CPU, % of a core", 2, lambda agent: _PER_CENT * agent.cpu_ns / agent.wall_ns),
    ("resident, MB", 1, lambda agent: agent.resident_bytes / _BYTES_PER_MB),
    ("proportional (PSS), MB", 1, lambda agent: agent.proportional_bytes / _BYTES_PER_MB),
    ("private, MB", 1, lambda agent: agent.private_bytes / _BYTES_PER_MB),
)

_CROWD_ROWS: Sequence[tuple[str, Callable[[Crowd], str]]] = (
    ("threads in each process", lambda crowd: str(crowd.threads)),
    ("traced at once", lambda crowd: f"{crowd.traced} of {crowd.processes}"),
    ("start of the agent to all attached, s", lambda crowd: f"{crowd.attach_ns / _NS_PER_S:.2f}"),
    ("end of the agent, all detached, s", lambda crowd: f"{crowd.detach_ns / _NS_PER_S:.2f}"),
    (
        "CPU of the agent, % of a core",
        lambda crowd: f"{_PER_CENT * crowd.cpu_ns / crowd.wall_ns:.2f}",
    ),
    (
        "CPU of all targets together, % of a core",
        lambda crowd: f"{_PER_CENT * crowd.targets_cpu_ns / crowd.wall_ns:.0f}",
    ),
    ("resident, MB", lambda crowd: f"{crowd.resident_bytes / _BYTES_PER_MB:.1f}"),
    ("proportional (PSS), MB", lambda crowd: f"{crowd.proportional_bytes / _BYTES_PER_MB:.1f}"),
    ("private, MB", lambda crowd: f"{crowd.private_bytes / _BYTES_PER_MB:.1f}"),
    (
        "a scrape, ms",
        lambda crowd: ranged((each.took_ns / _NS_PER_MS for each in crowd.scrapes), 0),
    ),
    (
        "a scrape, kB",
        lambda crowd: ranged((each.size_bytes / _BYTES_PER_KB for each in crowd.scrapes), 0),
    ),
    ("waits seen", lambda crowd: str(crowd.waits)),
    ("holds seen", lambda crowd: str(crowd.holds)),
    (
        "events lost, by reason",
        lambda crowd: ", ".join(f"{reason} {count}" for reason, count in crowd.lost) or "none",
    ),
    ("targets that lived on and ended when told", lambda crowd: str(crowd.ended_well)),
)


_PARTS = (
    ("takes over what the probes have counted, opens and ends windows", ("tick",)),
    ("samples each GIL, and who holds it", ("lock-sampler", "holder-sampler")),
    ("reads the memory of targets, for names, roles and checks", ("memory-reader",)),
    ("looks for new processes", ("scan",)),
    ("holds the probes, and hears from who does", ("gilscope-keeper", "keeper-reader")),
    ("keeps what the page shows", ("page",)),
)
"""What threads are for, by their names; what is left are scrapes, of which each has its own, and
threads that have hardly anything to do."""


def agent_table(results: Results) -> str:
    """Return what the tools use themselves, over all workloads."""
    rows = []
    for condition in measured_conditions(results):
        agents = [run.agent for run in results.runs if run.agent and run.condition == condition.key]
        if agents:
            cells = [ranged(map(measure, agents), digits) for _, digits, measure in _AGENT_COLUMNS]
            rows.append([condition.title, *cells])
    return table(["tool", *(title for title, _, _ in _AGENT_COLUMNS)], rows)


def crowd_table(crowds: Iterable[Crowd]) -> str:
    """Return what tracing many processes takes, one column a crowd."""
    columns = list(crowds)
    rows = [[title, *map(measure, columns)] for title, measure in _CROWD_ROWS]
    return table(["", *_titles(columns)], rows)


def parts_table(crowds: Iterable[Crowd]) -> str:
    """Return what the agent uses its CPU time for while it traces many processes."""
    columns = list(crowds)
    rows = []
    for title, names in _PARTS:
        parts = [sum(ns for name, ns in each.threads_cpu_ns if name in names) for each in columns]
        rows.append([title, *map(_of_a_core, parts, columns)])
    known = {name for _, names in _PARTS for name in names}
    rest = [
        each.cpu_ns - sum(ns for name, ns in each.threads_cpu_ns if name in known)
        for each in columns
    ]
    rows.append(["answers scrapes, and the rest", *map(_of_a_core, rest, columns)])
    return table(["% of a core", *_titles(columns)], rows)


def _titles(crowds: Iterable[Crowd]) -> list[str]:
    titles = {condition.key: condition.title for condition in CONDITIONS}
    return [f"{each.processes} {each.key}, {titles[each.condition]}" for each in crowds]


def _of_a_core(ns: int, crowd: Crowd) -> str:
    return f"{_PER_CENT * ns / crowd.wall_ns:.2f}"


def start_table(results: Results) -> str:
    """Return what goes by first of each attach."""
    rows = [
        [title, ranged((ns / _NS_PER_S for ns in found), 3)]
        for title, found in (
            ("Python alone", [each.python_ns for each in results.starts]),
            ("Python and the agent's modules", [each.modules_ns for each in results.starts]),
        )
    ]
    return table(["started", "s"], rows)


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
    return table(["interpreter", "cold, s", "warm, s"], rows)


def bar_table(results: Results) -> str:
    """Return each bar with its verdict."""
    verdicts = {True: "met", False: "**not met**", None: NONE}
    rows = [[bar.figure, bar.bar, bar.measured, verdicts[bar.is_met]] for bar in judge(results)]
    return table(["figure", "bar", "measured", ""], rows)
