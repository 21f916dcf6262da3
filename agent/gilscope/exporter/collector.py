"""The families of one scrape of ``serve``: what is traced, and the agent's report on itself."""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import gilscope
from gilscope.exporter.samples import Series
from gilscope.exporter.source import Logs, Source
from gilscope.exporter.stm_log import stm_families
from gilscope.exporter.targets import Targets
from gilscope.metrics import table as metrics
from gilscope.metrics.table import Family
from gilscope.model.agent import AgentState, TableState
from gilscope.model.gil import Refusal
from gilscope.model.observation import Observation
from gilscope.series.blocking import BlockingSeries
from gilscope.series.conflicts import ConflictSeries
from gilscope.series.pairs import PAIRS_OF_PROCESS
from gilscope.text.units import NS_PER_S

__all__ = ["AgentCollector", "agent_families"]


_log = logging.getLogger(__name__)


class AgentCollector:
    """Keeps figures of services alone. A failure costs the figures it hits, not the scrape."""

    def __init__(
        self,
        source: Source,
        book: BlockingSeries | None = None,
        logs: Logs = tuple,
        sites: ConflictSeries | None = None,
        targets: Targets | None = None,
    ) -> None:
        """Export what *source* sees, and what is in *logs*.

        *book* says whose the series are and which pairs have their own, and how many places at
        locks; *sites* remembers which places in logs, and *targets*, with the same book, what was
        counted.
        """
        self._source = source
        self._book = BlockingSeries() if book is None else book
        self._targets = Targets(self._book) if targets is None else targets
        self._logs = logs
        self._sites = ConflictSeries(PAIRS_OF_PROCESS) if sites is None else sites
        self.last_scrape_ns: int | None = None
        """How long the last one took; None: there was none yet."""

    def observe(self) -> Sequence[Observation]:
        """Return the state of every traced process now."""
        return self._source.observe()

    def collect(self) -> Iterator[Series]:
        """Yield all families of the metric table.

        Whoever writes each of them down before asking for the next has the time of that included
        in the duration of the scrape.
        """
        began_ns = time.monotonic_ns()
        observations: Sequence[Observation] = ()
        families: dict[Family, Series] = {}
        success = 1
        try:
            with self._sites.turn:
                logged = tuple(stm_families(self._logs(), self._sites, began_ns))
            families = {series.family: series for series in logged}
        except Exception:  # noqa: BLE001 - whatever fails, the scrape continues without it
            _log.exception("this scrape could not read the STM logs")
            success = 0
        try:
            with self._book.turn:
                observations = self._source.observe()
                traced = self._targets.series(observations)
            for family, series in traced.items():
                families.setdefault(family, Series(family)).extend(series)
        except Exception:  # noqa: BLE001 - likewise
            _log.exception("this scrape could not read the probes")
            success = 0
        yield from (families[family] for family in metrics.FAMILIES if family in families)
        yield _targets(observations, self._source.refusals())
        yield from self._agent_families()
        self.last_scrape_ns = time.monotonic_ns() - began_ns
        yield _one(metrics.SCRAPE_DURATION, self.last_scrape_ns / NS_PER_S)
        yield _one(metrics.SCRAPE_SUCCESS, success)
        yield _one(metrics.BUILD_INFO, 1, gilscope.__version__, self._source.bcc_version)

    def _agent_families(self) -> Sequence[Series]:
        try:
            return tuple(agent_families(self._source.agent_state()))
        except Exception:  # noqa: BLE001 - likewise
            _log.exception("this scrape could not measure the agent itself")
            return ()


def agent_families(state: AgentState) -> Iterator[Series]:
    """Yield the families about the agent itself; what the kernel does not tell is left out."""
    yield from _program_families(state)
    yield _one(metrics.AGENT_TRAPS, state.traps)
    costs = Series(metrics.AGENT_TRAP_COST)
    for site, cost_ns in state.trap_costs_ns.items():
        costs.add_ns((site, "true" if state.is_measured else "false"), cost_ns)
    yield costs
    yield from _table_families(state.tables)
    yield _one(metrics.AGENT_RESIDENT, state.resident_bytes)
    yield _one(metrics.AGENT_PRIVATE, state.private_bytes)
    yield _one(metrics.AGENT_CPU, state.cpu_ns / NS_PER_S)
    yield _one(metrics.AGENT_SAMPLING, state.sampling_cpu_ns / NS_PER_S)
    yield _one(metrics.AGENT_LOG_LINES_LOST, state.log_lines_lost)
    captures = Series(metrics.CAPTURES)
    for outcome, waits in state.captures.items():
        captures.add((outcome,), waits)
    yield captures


def _program_families(state: AgentState) -> Iterator[Series]:
    run_time, runs = Series(metrics.AGENT_BPF_RUN_TIME), Series(metrics.AGENT_BPF_RUNS)
    for program in state.program_runs:
        run_time.add_ns((program.name,), program.run_time_ns)
        runs.add((program.name,), program.runs)
    misses = Series(metrics.AGENT_BPF_MISSES)
    if state.bpf_misses is not None:
        misses.add((), state.bpf_misses)
    yield from (run_time, runs, misses)


def _table_families(tables: Iterable[TableState]) -> Iterator[Series]:
    entries = Series(metrics.AGENT_TABLE_ENTRIES)
    capacity = Series(metrics.AGENT_TABLE_CAPACITY)
    kernel_bytes = Series(metrics.AGENT_TABLE_BYTES)
    for table in tables:
        of_table = (table.name,)
        if table.entries is not None and table.capacity is not None:
            entries.add(of_table, table.entries)
            capacity.add(of_table, table.capacity)
        if table.kernel_bytes is not None:
            kernel_bytes.add(of_table, table.kernel_bytes)
    yield from (entries, capacity, kernel_bytes)


def _targets(observations: Iterable[Observation], refusals: Sequence[Refusal]) -> Series:
    # Whose locks are traced beside its GIL is one process all the same.
    processes: dict[int, bool] = {}
    for seen in observations:
        if seen.locks is not None and seen.locks.totals is None:
            continue  # its Python is too old, which is no failure: its GIL is traced
        pid = seen.process.pid
        processes[pid] = seen.is_valid and processes.get(pid, True)
    states = Counter("traced" if is_valid else "invalid" for is_valid in processes.values())
    states["refused"] = len(refusals)
    targets = Series(metrics.TARGETS)
    for state in ("traced", "invalid", "refused"):
        targets.add((state,), states[state])
    return targets


def _one(family: Family, value: float, *labels: str) -> Series:
    series = Series(family)
    series.add(labels, value)
    return series
