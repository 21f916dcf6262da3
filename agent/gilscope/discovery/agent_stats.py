"""Reads what the agent's own process, programs and maps cost."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from gilscope.bpf.info import MapStatistics, ProgramStatistics, map_statistics, program_statistics
from gilscope.gil.probes.probe import GilProbe
from gilscope.model.agent import AgentState, ProgramRuns, TableState
from gilscope.process.cpu_time import process_cpu_ns
from gilscope.system.log_output import lost_lines
from gilscope.system.memory_usage import OwnMemory, read_own_memory
from gilscope.tracing.tracer import Tracer
from gilscope.values import dataclass

__all__ = ["AgentReader", "own_state"]

_MEMORY_KEPT_NS = 12_000_000_000
"""So old figures of memory may be: to find them takes longer than all the rest. Who scrapes every
15 s, as most do, always gets those of now."""

_RUN_STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")


@dataclass(frozen=True, slots=True)
class _Memory:
    """What the agent's process and its maps took at some time."""

    at_ns: int
    own: OwnMemory
    maps: Mapping[str, MapStatistics]
    """By name, the rings among them."""


@dataclass(slots=True)
class AgentReader:
    """Reads what the agent takes that traces with *tracer*, in half a millisecond."""

    tracer: Tracer
    since_ns: int
    """CLOCK_MONOTONIC when the agent started."""
    run_statistics: Path = _RUN_STATISTICS
    """Says 1 while the kernel times every run of every BPF program."""
    captures: Callable[[], Mapping[str, int]] = dict
    """How many waits were captured, and were not."""
    _memory: _Memory | None = field(default=None, init=False)
    _last_keeper_ns: int = field(default=0, init=False)
    """CPU time of the process that holds the probes."""

    def read(self) -> AgentState:
        """Return the state of now, and of memory that of the last seconds; raises OSError."""
        gils, memory = self.tracer.gils, self._memory
        if memory is None or time.monotonic_ns() - memory.at_ns >= _MEMORY_KEPT_NS:
            memory = self._memory = _read_memory(gils.probe)
        costs = gils.trap_costs
        # A copy: one may be loaded meanwhile, for the first process that needs it.
        loaded = tuple(gils.probe.programs.items())
        programs = {name: program_statistics(fd) for name, fd in loaded}
        return AgentState(
            running_ns=time.monotonic_ns() - self.since_ns,
            cpu_ns=time.process_time_ns() + self._keeper_cpu_ns(),
            sampling_cpu_ns=gils.sampling_cpu_ns,
            resident_bytes=memory.own.resident_bytes,
            private_bytes=memory.own.private_bytes,
            traps=self.tracer.traps,
            trap_costs_ns={
                "full": costs.full_ns,
                "stepped": costs.stepped_ns,
                "contention": costs.contention_ns,
            },
            is_measured=costs.is_measured,
            tables=tuple(_tables(gils.probe, memory.maps)),
            program_runs=_runs(programs) if self._shows_runs() else (),
            bpf_misses=_misses(programs.values()),
            log_lines_lost=lost_lines(),
            captures=self.captures(),
        )

    def _keeper_cpu_ns(self) -> int:
        pid = self.tracer.gils.probe.keeper_pid
        if pid is not None:
            self._last_keeper_ns = max(self._last_keeper_ns, process_cpu_ns(pid) or 0)
        return self._last_keeper_ns

    def _shows_runs(self) -> bool:
        # The agent does not switch that on by itself, not even for a while: it costs two clock
        # readings a run, in the programs of everybody on the host, and what a trap costs is known
        # without it. And where it is off, figures that stand still would look like programs that
        # do not run.
        try:
            return self.run_statistics.read_text().strip() == "1"
        except OSError:
            return False  # before Linux 5.1


def own_state(since_ns: int) -> AgentState:
    """Return the state of an agent that began at *since_ns* and traces nothing; raises OSError."""
    memory = read_own_memory()
    return AgentState(
        running_ns=time.monotonic_ns() - since_ns,
        cpu_ns=time.process_time_ns(),
        sampling_cpu_ns=0,
        resident_bytes=memory.resident_bytes,
        private_bytes=memory.private_bytes,
        traps=0,
        trap_costs_ns={},
        is_measured=False,
        tables=(),
        program_runs=(),
        bpf_misses=None,
        log_lines_lost=lost_lines(),
    )


def _read_memory(probe: GilProbe) -> _Memory:
    maps = {name: map_statistics(table.fileno()) for name, table in probe.tables.items()}
    ring = probe.notice_ring
    maps[ring.name] = map_statistics(ring.fileno())
    return _Memory(time.monotonic_ns(), _with_keeper(read_own_memory(), probe.keeper_pid), maps)


def _with_keeper(own: OwnMemory, pid: int | None) -> OwnMemory:
    if pid is None:
        return own
    try:
        its = read_own_memory(Path(f"/proc/{pid}"))
    except OSError:
        return own  # it has just ended
    return OwnMemory(own.resident_bytes + its.resident_bytes, own.private_bytes + its.private_bytes)


def _tables(probe: GilProbe, maps: Mapping[str, MapStatistics]) -> Iterator[TableState]:
    entries = probe.table_fill
    for name in probe.tables:
        kernel = maps[name]
        yield TableState(name, entries.get(name), kernel.max_entries, kernel.memlock_bytes)
    # It holds bytes, not entries, and is emptied a few times a second.
    name = probe.notice_ring.name
    yield TableState(name, None, None, maps[name].memlock_bytes)


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
