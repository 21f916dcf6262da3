"""Reads what the agent's own process, programs and maps cost."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gilscope.agent_state import AgentState, ProgramRuns, TableState
from gilscope.gil.probe import GilProbe
from gilscope.gil.tracer import Tracer
from gilscope.kernel.statistics import ProgramStatistics, map_statistics, program_statistics
from gilscope.own_memory import read_own_memory

__all__ = ["AgentReader"]

_RUN_STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")


@dataclass(frozen=True, slots=True)
class AgentReader:
    """Looks at the agent that traces with *tracer*; a look takes half a millisecond."""

    tracer: Tracer
    since_ns: int
    """CLOCK_MONOTONIC when the agent started."""
    run_statistics: Path = _RUN_STATISTICS
    """Says 1 while the kernel times every run of every BPF program."""

    def read(self) -> AgentState:
        """Return the state of now; raises OSError."""
        memory = read_own_memory()
        costs = self.tracer.trap_costs
        programs = {name: program_statistics(fd) for name, fd in self.tracer.probe.programs.items()}
        return AgentState(
            running_ns=time.monotonic_ns() - self.since_ns,
            cpu_ns=time.process_time_ns(),
            sampling_cpu_ns=self.tracer.sampling_cpu_ns,
            resident_bytes=memory.resident_bytes,
            private_bytes=memory.private_bytes,
            traps=self.tracer.traps,
            trap_costs_ns={
                "full": costs.full_ns,
                "stepped": costs.stepped_ns,
                "contention": costs.contention_ns,
            },
            is_measured=costs.is_measured,
            tables=tuple(_tables(self.tracer.probe)),
            program_runs=_runs(programs) if self._shows_runs() else (),
            bpf_misses=_misses(programs.values()),
        )

    def _shows_runs(self) -> bool:
        # The agent does not switch that on by itself, not even for a while: it costs two clock
        # readings a run, in the programs of everybody on the host, and what a trap costs is known
        # without it. And where it is off, figures that stand still would look like programs that
        # do not run.
        try:
            return self.run_statistics.read_text().strip() == "1"
        except OSError:
            return False  # before Linux 5.1


def _tables(probe: GilProbe) -> Iterator[TableState]:
    entries = probe.table_fill
    for name, table in probe.tables.items():
        kernel = map_statistics(table.fileno())
        yield TableState(name, entries.get(name), kernel.max_entries, kernel.memlock_bytes)
    ring = probe.notice_ring
    # It holds bytes, not entries, and is emptied four times a second.
    yield TableState(ring.name, None, None, map_statistics(ring.fileno()).memlock_bytes)


def _runs(programs: Mapping[str, ProgramStatistics]) -> tuple[ProgramRuns, ...]:
    return tuple(
        ProgramRuns(name, kernel.run_time_ns, kernel.run_count)
        for name, kernel in programs.items()
        if kernel.run_time_ns is not None and kernel.run_count is not None
    )


def _misses(programs: Iterable[ProgramStatistics]) -> int | None:
    misses = [kernel.recursion_misses for kernel in programs]
    known = [count for count in misses if count is not None]
    return sum(known) if known else None
