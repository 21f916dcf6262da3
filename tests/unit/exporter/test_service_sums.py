"""From observations of many processes to the families of their services."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from gilscope.exporter.collector import AgentCollector
from gilscope.model.gil import GilObservation, Process, Tally, TracingCost
from gilscope.model.kinds import Kind
from gilscope.model.locks import LockObservation
from gilscope.model.transactions import StmObservation
from gilscope.series.blocking import BlockingSeries
from support.recordings.gil import (
    MS,
    PROCESS,
    gil,
    histogram,
    observation,
    thread,
    with_traces,
)
from support.recordings.locks import lock_recording
from support.recordings.transactions import stm_observation
from support.reports.scraped import OPEN_METRICS, PLAIN, Fixed, Scrape, read

_SERVICE = {"process": "app.py"}
_WAITS = "gilscope_gil_wait_seconds_count"
_CONVOYS = "gilscope_gil_convoy_waits_total"


class _Agent:
    """One that is scraped again and again."""

    def __init__(self) -> None:
        self._seen = Fixed()
        self._collector = AgentCollector(self._seen.source, BlockingSeries(by_service=True))

    def scrape(
        self,
        *gils: GilObservation,
        locks: Sequence[LockObservation] = (),
        transactions: Sequence[StmObservation] = (),
        content_type: str = PLAIN,
    ) -> Scrape:
        """Return what is told of these."""
        self._seen.observations = gils
        self._seen.locks, self._seen.transactions = locks, transactions
        return read(self._collector, content_type)


def _worker(
    pid: int, at_ns: int = 1000 * MS, *, waits: int = 0, process: Process = PROCESS
) -> GilObservation:
    """Return one whose threads have had so many waits of 20 ms, all of them convoys."""
    lock = replace(gil(blocking_call=histogram(*[20 * MS] * waits)), convoy_waits=waits)
    lost = {Kind.CONVOY: Tally(waits * 20 * MS, waits)}
    seen = observation((thread(1, "serve (app.py:8)", lost),), (lock,))
    totals = replace(seen.totals, at_ns=at_ns)
    return replace(seen, process=replace(process, pid=pid), totals=totals)


def _of(figures: Scrape, name: str, **labels: str) -> float | None:
    return figures.value(name, **_SERVICE, **labels)


def test_workers_are_one_service() -> None:
    """
    Counters, times and histograms are sums, and no series has a pid.
    """
    figures = _Agent().scrape(_worker(1, waits=3), _worker(2, waits=4))

    assert 7 == _of(figures, _CONVOYS, interpreter="0")
    assert 7 == _of(figures, _WAITS, interpreter="0", after="blocking_call")
    assert 0.14 == _of(
        figures, "gilscope_gil_wait_seconds_sum", interpreter="0", after="blocking_call"
    )
    role = "serve (app.py:8)"
    assert 0.14 == _of(figures, "gilscope_gil_thread_wait_seconds_total", role=role)
    assert 2 == _of(figures, "gilscope_gil_observed_seconds_total", window="all")
    assert 2 == _of(figures, "gilscope_target_processes")
    assert 2 == figures.value("gilscope_targets", state="traced")
    assert not [
        sample for family in figures.families for sample in family.samples if "pid" in sample.labels
    ]


def test_gauges_are_those_of_the_worst() -> None:
    """
    The longest wait, the dearest tracing, the least share of stacks; threads are added up.
    """
    costs = TracingCost(3 * MS, 0.02, 7, stack_share=0.5), TracingCost(MS, 0.001, 4, stack_share=1)
    seen = []
    for pid, (cost, waiting_ns) in enumerate(zip(costs, (50 * MS, 700 * MS), strict=True)):
        worker = _worker(pid)
        threads = (thread(1, "serve", {}, waiting_ns=waiting_ns),)
        seen.append(
            replace(worker, totals=replace(worker.totals, threads=threads, cost=cost)),
        )
    figures = _Agent().scrape(*seen)

    assert 2 == _of(figures, "gilscope_gil_waiting_threads")
    assert 0.7 == _of(figures, "gilscope_gil_longest_wait_seconds")
    assert 0.02 == _of(figures, "gilscope_target_overhead_ratio")
    assert 0.5 == _of(figures, "gilscope_gil_stack_sampling_ratio")
    assert 11 == _of(figures, "gilscope_target_traps_total")
    assert 0.004 == _of(figures, "gilscope_target_overhead_seconds_total")


def test_what_a_worker_has_counted_stays_when_it_ends() -> None:
    """
    Its last figures, seen with its end, and not only those of the scrape before.
    """
    agent = _Agent()
    agent.scrape(_worker(1, waits=3), _worker(2, waits=4))
    ended = agent.scrape(replace(_worker(1, waits=5), ended=True), _worker(2, waits=4))
    gone = agent.scrape(_worker(2, waits=6))
    recycled = agent.scrape(_worker(2, waits=6), replace(_worker(1, waits=1), since_ns=1))

    assert [9, 11, 12] == [
        _of(figures, _CONVOYS, interpreter="0") for figures in (ended, gone, recycled)
    ]
    assert [9, 11, 12] == [
        _of(figures, _WAITS, interpreter="0", after="blocking_call")
        for figures in (ended, gone, recycled)
    ]
    assert [1, 1, 2] == [
        _of(figures, "gilscope_target_processes") for figures in (ended, gone, recycled)
    ]


def test_a_worker_that_goes_unseen_lets_nothing_fall() -> None:
    """
    It has replaced its program, or nobody has scraped for long: what was last told stays.
    """
    agent = _Agent()
    agent.scrape(_worker(1, waits=30), _worker(2, waits=4))
    gone = agent.scrape(_worker(2, waits=6))
    later = agent.scrape(_worker(2, waits=9))

    # Two waits of the other one are left out, for none is to fall.
    assert [34, 37] == [_of(each, _CONVOYS, interpreter="0") for each in (gone, later)]
    assert [34, 37] == [
        _of(each, _WAITS, interpreter="0", after="blocking_call") for each in (gone, later)
    ]
    assert [0.68, 0.74] == [
        _of(each, "gilscope_gil_wait_seconds_sum", interpreter="0", after="blocking_call")
        for each in (gone, later)
    ]


def test_a_worker_that_is_not_trusted_leaves_what_it_had() -> None:
    """
    And says so; where none is trusted nothing is told but that.
    """
    agent = _Agent()
    agent.scrape(_worker(1, waits=3), _worker(2, waits=4))
    broken = replace(_worker(1), invalid="its probe has gone")
    half = agent.scrape(broken, _worker(2, waits=4))
    none = agent.scrape(broken, replace(_worker(2), invalid="likewise"))
    again = agent.scrape(broken, replace(_worker(2, waits=1), since_ns=5))

    assert 0 == _of(half, "gilscope_probe_valid", method="sites")
    assert 7 == _of(half, _CONVOYS, interpreter="0")
    assert 1 == _of(half, "gilscope_target_processes")
    assert ["gilscope_probe_valid"] == [
        sample.name
        for family in none.families
        for sample in family.samples
        if sample.labels.get("process")
    ]
    assert 7 == _of(again, _CONVOYS, interpreter="0")


def test_a_service_that_has_gone_has_no_series() -> None:
    """
    It continues where it was if it comes back within minutes, and else begins anew.
    """
    agent, other = _Agent(), replace(PROCESS, name="b.py")
    agent.scrape(replace(_worker(1, waits=3), ended=True), _worker(9, process=other))
    none = agent.scrape(_worker(9, 60_000 * MS, process=other))
    soon = agent.scrape(_worker(1, 100_000 * MS, waits=1), _worker(9, 100_000 * MS, process=other))
    agent.scrape(_worker(9, 110_000 * MS, process=other))
    agent.scrape(_worker(9, 411_000 * MS, process=other))
    late = agent.scrape(replace(_worker(1, 412_000 * MS, waits=1), since_ns=411_000 * MS))

    assert _of(none, _CONVOYS, interpreter="0") is None
    assert 4 == _of(soon, _CONVOYS, interpreter="0")
    assert 1 == _of(late, _CONVOYS, interpreter="0")


def test_services_are_told_apart_by_name_container_and_pod() -> None:
    """
    As their labels are.
    """
    processes = [
        PROCESS,
        replace(PROCESS, name="b.py"),
        replace(PROCESS, container_id="c1"),
        replace(PROCESS, pod_uid="p1"),
    ]
    figures = _Agent().scrape(
        *(_worker(pid, waits=pid, process=each) for pid, each in enumerate(processes, start=1))
    )

    assert [1, 2, 3, 4] == [
        figures.value(
            _CONVOYS,
            process=each.name,
            container_id=each.container_id or "",
            pod_uid=each.pod_uid or "",
            interpreter="0",
        )
        for each in processes
    ]


def test_who_joins_with_the_info_of_a_service_finds_one() -> None:
    """
    That of most of its processes.
    """
    pythons = ("3.11.2", "3.12.1", "3.12.1")
    figures = _Agent().scrape(
        *(_worker(n, process=replace(PROCESS, python=each)) for n, each in enumerate(pythons))
    )

    ((info,),) = [[each.labels] for each in figures.samples("gilscope_target_info")]
    assert "3.12.1" == info["version"]


def test_exemplars_are_the_last_of_each_bucket() -> None:
    """
    Of all processes together.
    """
    recorded = with_traces().observation
    traces = recorded.totals.traces
    assert traces is not None
    later = tuple(
        replace(each, ended_unix_ns=each.ended_unix_ns + 5_000_000_000, trace_id="ab" * 16)
        for each in traces.recent
    )
    totals = replace(recorded.totals, traces=replace(traces, recent=later))
    other = replace(recorded, process=replace(recorded.process, pid=9), totals=totals)
    figures = _Agent().scrape(other, recorded, content_type=OPEN_METRICS)

    told = [each.exemplar for each in figures.samples("gilscope_gil_wait_seconds_bucket")]
    assert {"ab" * 16} == {each.labels["trace_id"] for each in told if each}


def test_locks_and_transactions_of_a_service_are_sums() -> None:
    """
    A process whose locks are traced beside its GIL is one all the same.
    """
    locked = lock_recording().observation
    beside = replace(locked.process, pid=1)
    live = [stm_observation(pid=pid) for pid in (11, 12)]
    figures = _Agent().scrape(
        _worker(1, waits=3),
        locks=[replace(locked, process=beside), replace(locked, process=replace(beside, pid=2))],
        transactions=[replace(each, process=replace(each.process, name="stm.py")) for each in live],
    )

    assert 0.06 == _of(figures, "gilscope_lock_wait_seconds_total", kind="object")
    assert 10 == _of(figures, "gilscope_lock_world_stops_total", cause="gc")
    assert 0.001 == _of(figures, "gilscope_lock_overhead_ratio")
    assert 60 == figures.value(
        "gilscope_stm_transactions_total", process="stm.py", outcome="commit"
    )
    assert 60 == figures.value("gilscope_stm_transaction_seconds_count", process="stm.py")
    assert 2 == _of(figures, "gilscope_target_processes")
    assert 2 == figures.value("gilscope_target_processes", process="stm.py")


def _counters(figures: Scrape) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in figures.families
        if family.type in ("counter", "histogram")
        for sample in family.samples
        if sample.labels.get("process")
    }


@pytest.mark.parametrize("seed", range(10))
def test_counters_never_run_back_while_workers_come_and_go(seed: int) -> None:
    """
    Some are seen to end, and some vanish; what all have counted is told but for the latter.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    agent, number = _Agent(), 0
    alive: dict[int, int] = {}
    before: Mapping[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    gone = 0
    for step in range(60):
        at_ns = step * 15_000 * MS
        while len(alive) < 4:
            number += 1
            alive[number] = 0
        for pid in alive:
            alive[pid] += chance.randint(0, 5)
        ended = [pid for pid in alive if chance.random() < 0.1]
        seen = [
            replace(_worker(pid, at_ns, waits=alive[pid]), since_ns=pid, ended=pid in ended)
            for pid in alive
        ]
        figures = agent.scrape(*seen)
        now = _counters(figures)

        assert [] == [key for key, value in before.items() if now[key] < value]
        assert gone + sum(alive.values()) == _of(figures, _CONVOYS, interpreter="0")
        before = now
        for pid in ended:
            gone += alive.pop(pid)
    assert number > 10
