"""What a scrape says about the agent, and that it survives whatever fails."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from prometheus_client import Metric

from gilscope.exporter.collector import AgentCollector
from gilscope.metrics import table as metrics
from gilscope.model.agent import AgentState
from gilscope.model.gil import TracingCost
from gilscope.model.observation import Observation
from gilscope.model.transactions import Library, Method
from support.recordings.gil import full_mode, gil, histogram, with_traces
from support.recordings.locks import lock_recording
from support.recordings.transactions import stm_observation
from support.reports.scraped import AGENT, Fixed, read, scrape
from support.stm_log.following import followed_log
from support.stm_log.program import played_log


class _Broken(Fixed):
    """Cannot read its maps."""

    def observe(self) -> Sequence[Observation]:
        """Fail as a map does that is gone."""
        raise OSError(9, "Bad file descriptor")


class _Blind(Fixed):
    """Cannot look at itself."""

    def agent_state(self) -> AgentState:
        """Fail as /proc does where it is not mounted."""
        raise OSError(2, "No such file or directory")


def test_broken_source_does_not_break_the_scrape(caplog: pytest.LogCaptureFixture) -> None:
    """
    The agent's own figures are there, and say that the others are not.
    """
    figures = read(AgentCollector(_Broken().source))

    assert 0 == figures.value("gilscope_scrape_success")
    assert 5000 == figures.value("gilscope_agent_traps_total")
    assert ["this scrape could not read the probes"] == [
        record.getMessage() for record in caplog.records
    ]


def test_blind_agent_does_not_break_the_scrape(caplog: pytest.LogCaptureFixture) -> None:
    """
    The figures about processes are there, those about the agent are not.
    """
    figures = read(AgentCollector(_Blind([full_mode().observation]).source))

    assert 1 == figures.value("gilscope_scrape_success")
    assert 1420 == figures.of_process("gilscope_target_traps_total")
    assert "gilscope_agent_traps_total" not in figures.names()
    assert ["this scrape could not measure the agent itself"] == [
        record.getMessage() for record in caplog.records
    ]


def test_memory_and_time_of_the_agent() -> None:
    """
    Bytes, and seconds of CPU time.
    """
    figures = scrape()

    assert [48_000_000, 29_500_000, 3, 0.3, 5000] == [
        figures.value(f"gilscope_agent_{name}")
        for name in (
            "resident_bytes",
            "private_bytes",
            "cpu_seconds_total",
            "sampling_seconds_total",
            "traps_total",
        )
    ]


def test_tables_tell_what_is_known_of_them() -> None:
    """
    Fill and capacity of what is counted, memory of what the kernel tells it of.
    """
    figures = scrape()

    def of(table: str) -> list[float | None]:
        return [
            figures.value(f"gilscope_agent_table_{what}", table=table)
            for what in ("entries", "capacity", "bytes")
        ]

    assert [600, 65536, 1_000_000] == of("threads")
    assert [None, None, None] == of("drop_requests")
    assert [None, None, 275_784] == of("notices")


@pytest.mark.parametrize("is_measured", [True, False])
def test_cost_of_a_trap_says_whether_it_was_measured(*, is_measured: bool) -> None:
    """
    An assumed cost is not to be taken for a measured one.
    """
    figures = scrape(agent=replace(AGENT, is_measured=is_measured))

    assert [540e-9, 8900e-9, 700e-9] == [
        figures.value(
            "gilscope_agent_trap_cost_seconds", site=site, measured=str(is_measured).lower()
        )
        for site in ("full", "stepped", "contention")
    ]


def test_runs_of_programs_are_exported_while_the_kernel_counts_them() -> None:
    """
    Otherwise there is no series, rather than one that stands still.
    """
    names = {"gilscope_agent_bpf_run_seconds_total", "gilscope_agent_bpf_runs_total"}
    counted, not_counted = scrape(), scrape(agent=replace(AGENT, program_runs=()))

    assert [0.0015, 4000] == [counted.value(name, program="on_release") for name in sorted(names)]
    assert set() == names & not_counted.names()


def test_misses_are_absent_where_the_kernel_does_not_count_them() -> None:
    """
    Before Linux 5.12 nobody knows.
    """
    name = "gilscope_agent_bpf_misses_total"

    assert 0 == scrape().value(name)
    assert name not in scrape(agent=replace(AGENT, bpf_misses=None)).names()


def test_scrape_duration_has_the_writing_in_it() -> None:
    """
    The figures of processes are written before the time is taken.
    """
    collector = AgentCollector(Fixed([full_mode().observation]).source)

    figures = read(collector)

    assert collector.last_scrape_ns is not None
    assert collector.last_scrape_ns / 1e9 == figures.value("gilscope_scrape_duration_seconds")


def test_every_family_of_the_table_is_exported_with_its_labels() -> None:
    """
    Table and exporter agree: names, types, help texts and label names.
    """
    recorded = full_mode().observation
    lock = replace(recorded.totals.gils[0], waits=gil(unknown=histogram(1)).waits)
    traces = with_traces().observation.totals.traces
    cost = TracingCost(0, 0.0, 0, stack_share=0.5, waits_unseen_ns=1, wait_error=0.03)
    totals = replace(recorded.totals, gils=(lock,), traces=traces, cost=cost)
    full = replace(recorded, totals=totals)

    # Those that wait for this one do not ask for it, so that wake-ups may fail.
    semaphore = replace(recorded.process, pid=4713, asks_holder=False, wakes_in_vain=True)

    # No single process has waits of RPython and restarts of libitm.
    stm = (stm_observation(), stm_observation(Library.LIBITM, Method.RESTARTS, pid=4712))
    collector = AgentCollector(
        Fixed(
            (full, replace(full, process=semaphore)),
            transactions=stm,
            locks=[lock_recording().observation],
        ).source,
        logs=lambda: [followed_log(played_log("E16", 99).content)],
    )
    exported = {metric.name: metric for metric in read(collector).families}

    expected = {_base_name(family): family for family in metrics.FAMILIES}
    assert set(expected) == set(exported)
    for name, family in expected.items():
        assert (family.type, family.help) == (exported[name].type, exported[name].documentation)
        assert set(family.labels) == _label_names(exported[name])


def _base_name(family: metrics.Family) -> str:
    return family.name.removesuffix("_total") if family.type == "counter" else family.name


def _label_names(metric: Metric) -> set[str]:
    return {name for sample in metric.samples for name in sample.labels} - {"le"}
