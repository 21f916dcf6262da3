"""What the agent says about itself, beside what it has just done."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accuracy.truth import started
from gilscope.bpf.info import enable_run_statistics
from gilscope.discovery.agent_stats import AgentReader
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.process.cpu_time import process_cpu_ns
from gilscope.system.memory_usage import read_own_memory
from gilscope.tracing.tracer import Tracer
from support.tracing.full_mode import held_by, tracing
from support.tracing.trace import looked_after, observation_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3"


@pytest.fixture
def tracer(probe: GilProbe) -> Iterator[GilAccount]:
    """A tracer in full mode."""
    with tracing(probe) as made:
        yield made


@pytest.fixture
def counting() -> Iterator[None]:
    """Let the kernel count the runs of BPF programs."""
    switch = enable_run_statistics()
    yield
    os.close(switch)


def _reader(tracer: GilAccount, setting: Path, value: str) -> AgentReader:
    setting.write_text(value)
    return AgentReader(Tracer(tracer), time.monotonic_ns(), setting)


def test_traps_are_those_of_all_processes_also_of_dropped_ones(
    tracer: GilAccount, tmp_path: Path
) -> None:
    """
    The total does not fall when a process goes.
    """
    reader = _reader(tracer, tmp_path / "setting", "0\n")
    before = reader.read().traps
    with started([_PYTHON], "exact_count.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.run()
        cost = observation_of(tracer, workload.pid).totals.cost
        during = reader.read().traps
        tracer.drop(workload.pid)

    assert cost is not None
    assert cost.traps >= 4 * 23  # the ends of a wait and of the hold after it
    assert [cost.traps] * 2 == [during - before, reader.read().traps - before]


@pytest.mark.usefixtures("counting")
def test_programs_have_run_for_every_hold(tracer: GilAccount, tmp_path: Path) -> None:
    """
    Where the kernel counts, runs of the release program are at least as many as holds ended.
    """
    reader = _reader(tracer, tmp_path / "setting", "1\n")
    before = {program.name: program for program in reader.read().program_runs}
    with started([_PYTHON], "exact_count.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.run()
        holds = sum(
            held_by(thread).count for thread in observation_of(tracer, workload.pid).totals.threads
        )
        after = {program.name: program for program in reader.read().program_runs}

    assert set(tracer.probe.programs) == set(after)
    assert after["on_release"].runs - before["on_release"].runs >= holds >= 23
    assert after["on_release"].run_time_ns > before["on_release"].run_time_ns


def test_programs_are_not_shown_while_nobody_counts(tracer: GilAccount, tmp_path: Path) -> None:
    """
    Zeros would say that nothing runs; so would a kernel without the setting.
    """
    off = _reader(tracer, tmp_path / "setting", "0\n")
    absent = AgentReader(Tracer(tracer), 0, tmp_path / "nothing")

    assert ((), ()) == (off.read().program_runs, absent.read().program_runs)


def test_tables_show_what_is_in_them(tracer: GilAccount, tmp_path: Path) -> None:
    """
    One process with one lock and a few threads; every table and the ring take kernel memory.
    """
    reader = _reader(tracer, tmp_path / "setting", "0\n")
    with started([_PYTHON], "exact_count.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.run()
        threads = observation_of(tracer, workload.pid).totals.threads
        tables = {table.name: table for table in reader.read().tables}

    assert {*tracer.probe.tables, "notices"} == set(tables)
    assert [1, 1, 1, 1, 0] == [
        tables[name].entries for name in ("targets", "gils", "locks", "windows", "other_locks")
    ]
    # A dead thread has left its table only when it was read again.
    alive = sum(thread.is_alive for thread in threads)
    assert alive <= (tables["threads"].entries or 0) <= len(threads)
    for table in tables.values():
        assert table.kernel_bytes
        if table.entries is not None and table.capacity is not None:
            assert table.entries < table.capacity


def test_memory_and_time_are_the_agents_own(tracer: GilAccount, tmp_path: Path) -> None:
    """
    As /proc and the clock tell, of the agent and of the process that holds its probes.
    """
    reader = _reader(tracer, tmp_path / "setting", "0\n")
    with started([_PYTHON], "exact_count.py") as workload:
        tracer.attach(workload.pid)
        keeper_pid = tracer.probe.keeper_pid
        assert keeper_pid is not None
        began_ns = time.process_time_ns() + (process_cpu_ns(keeper_pid) or 0)
        state = reader.read()
        ended_ns = time.process_time_ns() + (process_cpu_ns(keeper_pid) or 0)
        keeper = read_own_memory(Path(f"/proc/{keeper_pid}"))
    resident_bytes = read_own_memory().resident_bytes + keeper.resident_bytes

    assert began_ns <= state.cpu_ns <= ended_ns
    assert state.resident_bytes == pytest.approx(resident_bytes, rel=0.1)
    assert 0 < state.private_bytes <= state.resident_bytes
    assert state.bpf_misses is not None
    assert {"full", "stepped", "contention"} == set(state.trap_costs_ns)
