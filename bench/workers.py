"""Measures one agent on a host with a thousand workers, and writes docs/workers.md.

The workers of one prefork server are traced by `gilscope serve --match`, in contention and in auto
mode. Beside them it measures what a probe costs a process that is not traced, and runs into it
because others are. Fails where a bar is missed.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Run as a script: its own folder is on the path, the checkout and the tests are not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.conditions import gilscope_command
from bench.footprint import read_family_cpu_ns, read_memory
from bench.machine import StolenTime, read_machine
from bench.markdown import key_table, table
from bench.served import Figures, fetch_page
from bench.tool import Tool, ToolFailed, tool_environment, tool_started

from accuracy.truth import WorkloadFailed, started
from gilscope.bpf.uprobes.hooks import Hook
from gilscope.gil.calibration.calibrate import dummy_hooks
from gilscope.gil.calibration.dummy_lock import DummyLock, Exercise
from gilscope.gil.calibration.measure import measure_trap_costs
from gilscope.gil.probes.probe import GilProbe
from support.interpreters.known import find_interpreter

__all__ = ["TEXT", "AgentFigures", "main", "rows_of"]

_ROOT = Path(__file__).resolve().parents[1]
_TARGET = Path(__file__).with_name("workers_target.py")
TEXT = Path(__file__).with_name("workers.md")
"""Around which the page is made."""
_PAGE = _ROOT / "docs" / "workers.md"
# The brackets keep the pattern from matching the command line that it stands in.
_PATTERN = r"workers_targe[t]\.py"
_PYTHON = "debian-3.11"
_MODES = ("contention", "auto")
_ALL_WITHIN_S = 180.0
_LOOK_S = 0.05
_ALL_TRACED = "more since the last one that is named here"
"""Is in its log when it has been through all processes that there are, and they are many."""
_IDLE_S = 30.0
_SCRAPES = 3
_RUNS, _ROUNDS, _TRAPS_A_ROUND = 100, 40, 2
_NS_PER_S = 1_000_000_000
_MB, _KB = 1_000_000, 1000

_BARS = {
    "all are traced": 10.0,
    "private memory": 80.0,
    "CPU, nobody scrapes": 5.0,
    "a scrape": 1.0,
}


@dataclass(frozen=True, slots=True)
class AgentFigures:
    """What it took to trace them all, in one mode."""

    attach_s: float
    attach_cpu_s: float
    idle_percent: float
    """Of a core, while nobody scrapes."""
    private_mb: float
    scrape_s: float
    """The longest of some."""
    scrape_kb: float
    series: int

    def figures(self) -> dict[str, tuple[float, str]]:
        """Return what is told of it, with its unit."""
        return {
            "all are traced": (self.attach_s, " s"),
            "CPU time until then": (self.attach_cpu_s, " s"),
            "private memory": (self.private_mb, " MB"),
            "CPU, nobody scrapes": (self.idle_percent, " % of a core"),
            "a scrape": (self.scrape_s, " s"),
            "its size": (self.scrape_kb, " kB"),
            "its series": (self.series, ""),
        }


def main() -> int:
    """Measure, write the page, and return 1 where a bar is missed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--workers", type=int, default=1000)
    options.add_argument("--output", type=Path, default=_PAGE)
    arguments = options.parse_args()
    try:
        stolen = StolenTime()
        with tempfile.TemporaryDirectory() as cache:
            environment = tool_environment(cache)
            agents = {mode: _measured(mode, arguments.workers, environment) for mode in _MODES}
        traced_ns, untraced_ns = _trap_ns()
    except (OSError, ToolFailed, WorkloadFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rows, is_missed = rows_of(agents)
    text = TEXT.read_text().format(
        workers=f"{arguments.workers:,}",
        machine=_machine(stolen).rstrip(),
        agents=table(("", "bar", *_MODES), rows).rstrip(),
        traced=f"{traced_ns:.0f}",
        untraced=f"{untraced_ns:.0f}",
    )
    arguments.output.write_text(text)
    print(text)
    return int(is_missed)


def _measured(mode: str, workers: int, environment: Mapping[str, str]) -> AgentFigures:
    with _server(workers), _serving(mode, environment) as tool:
        began_ns = time.monotonic_ns() - tool.attach_ns
        while _ALL_TRACED not in tool.output:
            if time.monotonic_ns() - began_ns > _ALL_WITHIN_S * _NS_PER_S:
                raise ToolFailed(f"did not trace all of {workers} workers")
            time.sleep(_LOOK_S)
        attach_s = (time.monotonic_ns() - began_ns) / _NS_PER_S
        attach_cpu_s = read_family_cpu_ns(tool.pid) / _NS_PER_S
        # What follows the start: names of threads, first windows.
        time.sleep(_IDLE_S)
        before_ns = read_family_cpu_ns(tool.pid)
        time.sleep(_IDLE_S)
        idle_percent = (read_family_cpu_ns(tool.pid) - before_ns) / (_IDLE_S * _NS_PER_S) * 100
        took_s, page = [], ""
        for _ in range(_SCRAPES):
            scraped_s = time.monotonic()
            page = fetch_page(tool)
            took_s.append(time.monotonic() - scraped_s)
        traced = Figures(page).traced
        if traced <= workers:
            raise ToolFailed(f"traces {traced} of {workers} workers and their first process")
        return AgentFigures(
            attach_s=attach_s,
            attach_cpu_s=attach_cpu_s,
            idle_percent=idle_percent,
            private_mb=read_memory(tool.pid).private_bytes / _MB,
            scrape_s=max(took_s),
            scrape_kb=len(page) / _KB,
            series=sum(not line.startswith("#") for line in page.splitlines()),
        )


@contextmanager
def _server(workers: int) -> Iterator[None]:
    interpreter = find_interpreter(_PYTHON)
    with started(interpreter.argv, str(_TARGET), str(workers)) as workload:
        yield
        workload.finish()


@contextmanager
def _serving(mode: str, environment: Mapping[str, str]) -> Iterator[Tool]:
    command = gilscope_command("--match", _PATTERN, mode=mode)
    with tool_started(command, "Serving ", environment) as tool:
        yield tool


def _trap_ns() -> tuple[float, float]:
    """Return what a trap on a wait costs a process that is traced, and one that is not."""
    with GilProbe() as probe:
        costs = measure_trap_costs(probe)
        with DummyLock() as lock:
            waits = ("on_wait", "on_wait_return")
            hooks = [Hook(*hook) for hook in dummy_hooks(lock) if hook.program in waits]
            held = probe.hold(os.getpid(), hooks)
            took = [
                min(lock.run(Exercise.WAITS, _ROUNDS, is_probed=is_probed) for _ in range(_RUNS))
                for is_probed in (False, True)
            ]
            probe.release(held)
    return costs.contention_ns, (took[1] - took[0]) / (_ROUNDS * _TRAPS_A_ROUND)


def rows_of(agents: Mapping[str, AgentFigures]) -> tuple[list[tuple[str, ...]], bool]:
    """Return the rows of the table about *agents*, by mode, and whether a bar is missed."""
    figures = {mode: agent.figures() for mode, agent in agents.items()}
    rows, is_missed = [], False
    for name, (_, unit) in figures[_MODES[0]].items():
        bar = _BARS.get(name)
        values = [figures[mode][name][0] for mode in _MODES]
        is_missed |= bar is not None and max(values) > bar
        digits = 0 if name == "its series" else 1
        rows.append(
            (
                name,
                "" if bar is None else f"{bar:g}{unit}",
                *(f"{value:,.{digits}f}{unit}" for value in values),
            )
        )
    return rows, is_missed


def _machine(stolen: StolenTime) -> str:
    read = read_machine([find_interpreter(_PYTHON)])
    return key_table(
        (
            ("CPU", f"{read.cpu}, {read.cpus} usable"),
            ("kernel", read.kernel),
            *read.versions[:2],
            ("stolen by the hypervisor meanwhile", f"{100 * stolen.share():.1f} %"),
        )
    )


if __name__ == "__main__":
    sys.exit(main())
