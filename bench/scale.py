"""Measures one ``gilscope serve`` that traces many processes at once."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.conditions import Condition, gilscope_command
from bench.footprint import (
    read_cpu_ns,
    read_family_cpu_ns,
    read_memory,
    read_threads_cpu_ns,
)
from bench.measurement import Crowd, Scrape
from bench.served import Figures, fetch_page
from bench.tool import Tool, tool_started

from accuracy.truth import Workload, WorkloadFailed, started
from support.interpreters.interpreter import Interpreter

__all__ = ["BUSY", "MANY", "Plan", "measure_crowd"]

_SCRIPT = Path(__file__).with_name("scale_target.py")
# The brackets keep the pattern from matching the command line that it stands in.
_PATTERN = r"scale_targe[t]\.py"
_SCRAPE_EVERY_S = 15.0
"""As `deploy/prometheus` does."""
_ALL_WITHIN_S = 60.0
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Plan:
    """What is traced, and for how long."""

    key: str
    processes: int
    threads: int
    kinds: tuple[str, ...]
    """What the processes do, in turns."""
    scrapes: int = 4
    settle_s: float = 60.0
    """From when all are traced to the first scrape: an agent runs for days, and what it looks for
    in new processes it looks for again and again, but soon less often."""

    def reduced(self, divisor: int) -> "Plan":
        """Return a smaller one."""
        processes = max(len(self.kinds), self.processes // divisor)
        scrapes, settle_s = max(1, self.scrapes // divisor), self.settle_s / divisor
        return Plan(self.key, processes, self.threads, self.kinds, scrapes, settle_s)


MANY = Plan("quiet", 200, 8, ("quiet",))
BUSY = Plan("busy", 20, 2, ("fight", "io"))


def measure_crowd(
    plan: Plan, condition: Condition, interpreter: Interpreter, environment: Mapping[str, str]
) -> Crowd:
    """Return what it takes to trace them all; raises ToolFailed and WorkloadFailed."""
    mode = condition.key.partition("-")[0]
    command = gilscope_command("--match", _PATTERN, mode=mode, budget=condition.budget)
    with _targets(plan, interpreter) as targets:
        pids = [target.pid for target in targets]
        began_ns = time.monotonic_ns()
        with tool_started(command, condition.marker, environment) as tool:
            first = _await_all(tool, plan.processes)
            attach_ns = time.monotonic_ns() - began_ns
            time.sleep(plan.settle_s)
            before_ns, began_ns = _own_cpu_ns(tool), time.monotonic_ns()
            targets_before_ns = sum(map(read_cpu_ns, pids))
            threads_before_ns = read_threads_cpu_ns(tool.pid)
            scrapes, page = _scrape(tool, plan.scrapes)
            spent_ns, wall_ns = _own_cpu_ns(tool) - before_ns, time.monotonic_ns() - began_ns
            targets_ns = sum(map(read_cpu_ns, pids)) - targets_before_ns
            threads_ns = read_threads_cpu_ns(tool.pid)
            memory = read_memory(tool.pid)
        last = Figures(page)
        return Crowd(
            key=plan.key,
            condition=condition.key,
            processes=plan.processes,
            threads=plan.threads,
            traced=first.traced,
            attach_ns=attach_ns,
            detach_ns=tool.detach_ns,
            cpu_ns=spent_ns,
            wall_ns=wall_ns,
            threads_cpu_ns=tuple(
                (name, max(0, ns - threads_before_ns.get(name, 0)))
                for name, ns in sorted(threads_ns.items())
            ),
            targets_cpu_ns=targets_ns,
            resident_bytes=memory.resident_bytes,
            proportional_bytes=memory.proportional_bytes,
            private_bytes=memory.private_bytes,
            scrapes=scrapes,
            waits=last.waits - first.waits,
            holds=last.holds - first.holds,
            lost=_lost(last),
            ended_well=sum(_ends_well(target) for target in targets),
        )


@contextmanager
def _targets(plan: Plan, interpreter: Interpreter) -> Iterator[Sequence[Workload]]:
    with ExitStack() as stack:
        threads = ("--threads", str(plan.threads))
        yield [
            stack.enter_context(
                started(interpreter.argv, str(_SCRIPT), plan.kinds[n % len(plan.kinds)], *threads)
            )
            for n in range(plan.processes)
        ]


def _await_all(tool: Tool, processes: int) -> Figures:
    deadline_s = time.monotonic() + _ALL_WITHIN_S
    while True:
        figures = Figures(fetch_page(tool))
        if figures.traced >= processes or time.monotonic() > deadline_s:
            return figures
        time.sleep(_LOOK_S)


def _scrape(tool: Tool, times: int) -> tuple[tuple[Scrape, ...], str]:
    """Return what each of so many scrapes took, one every 15 seconds, and the last page."""
    scrapes: list[Scrape] = []
    page = ""
    for _ in range(times):
        # Like Prometheus: the pause decides, not what happens meanwhile.
        time.sleep(_SCRAPE_EVERY_S)
        began_ns = time.monotonic_ns()
        page = fetch_page(tool)
        scrapes.append(Scrape(time.monotonic_ns() - began_ns, len(page.encode())))
    return tuple(scrapes), page


def _own_cpu_ns(tool: Tool) -> int:
    return read_family_cpu_ns(tool.pid)


def _lost(figures: Figures) -> tuple[tuple[str, int], ...]:
    reasons: Counter[str] = Counter()
    for sample in figures.samples("gilscope_lost_events_total"):
        reasons[sample.labels["reason"]] += round(sample.value)
    return tuple(sorted((+reasons).items()))


def _ends_well(target: Workload) -> bool:
    try:
        return target.finish() == 0
    except (WorkloadFailed, OSError):
        return False
