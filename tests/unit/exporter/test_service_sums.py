"""From observations of many processes to the families of their services."""

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gilscope.exporter.service_sums import ServiceSums
from gilscope.exporter.targets import add_target
from gilscope.model.gil import TracingCost
from gilscope.model.observation import Observation
from gilscope.series.by_name.owners import service_of
from gilscope.text.units import NS_PER_S
from support.recordings.gil import MS, PROCESS, gil, histogram, thread
from support.reports.scraped import Scrape
from support.reports.services import CONVOYS, WAITS, ScrapedAgent, of_service, worker


def test_workers_are_one_service() -> None:
    """
    Counters, times and histograms are sums, and no series has a pid.
    """
    figures = ScrapedAgent().scrape(worker(1, waits=3), worker(2, waits=4))

    assert 7 == of_service(figures, CONVOYS, interpreter="0")
    assert 7 == of_service(figures, WAITS, interpreter="0", after="blocking_call")
    assert 0.14 == of_service(
        figures, "gilscope_gil_wait_seconds_sum", interpreter="0", after="blocking_call"
    )
    role = "serve (app.py:8)"
    assert 0.14 == of_service(figures, "gilscope_gil_thread_wait_seconds_total", role=role)
    assert 2 == of_service(figures, "gilscope_gil_observed_seconds_total", window="all")
    assert 2 == of_service(figures, "gilscope_target_processes")
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
        idle = worker(pid)
        threads = (thread(1, "serve", {}, waiting_ns=waiting_ns),)
        seen.append(
            replace(idle, totals=replace(idle.totals, threads=threads, cost=cost)),
        )
    figures = ScrapedAgent().scrape(*seen)

    assert 2 == of_service(figures, "gilscope_gil_waiting_threads")
    assert 0.7 == of_service(figures, "gilscope_gil_longest_wait_seconds")
    assert 0.02 == of_service(figures, "gilscope_target_overhead_ratio")
    assert 0.5 == of_service(figures, "gilscope_gil_stack_sampling_ratio")
    assert 11 == of_service(figures, "gilscope_target_traps_total")
    assert 0.004 == of_service(figures, "gilscope_target_overhead_seconds_total")


def test_what_a_worker_has_counted_stays_when_it_ends() -> None:
    """
    Its last figures, seen with its end, and not only those of the scrape before.
    """
    agent = ScrapedAgent()
    agent.scrape(worker(1, waits=3), worker(2, waits=4))
    ended = agent.scrape(replace(worker(1, waits=5), ended=True), worker(2, waits=4))
    gone = agent.scrape(worker(2, waits=6))
    recycled = agent.scrape(worker(2, waits=6), replace(worker(1, waits=1), since_ns=1))

    assert [9, 11, 12] == [
        of_service(figures, CONVOYS, interpreter="0") for figures in (ended, gone, recycled)
    ]
    assert [9, 11, 12] == [
        of_service(figures, WAITS, interpreter="0", after="blocking_call")
        for figures in (ended, gone, recycled)
    ]
    assert [1, 1, 2] == [
        of_service(figures, "gilscope_target_processes") for figures in (ended, gone, recycled)
    ]


def test_a_worker_that_goes_unseen_leaves_what_was_seen() -> None:
    """
    It has replaced its program, or nobody has scraped for long; the others lose nothing by that.
    """
    agent = ScrapedAgent()
    agent.scrape(worker(1, waits=30), worker(2, waits=4))
    gone = agent.scrape(worker(2, waits=6))
    later = agent.scrape(worker(2, waits=9))

    assert [36, 39] == [of_service(each, CONVOYS, interpreter="0") for each in (gone, later)]
    assert [36, 39] == [
        of_service(each, WAITS, interpreter="0", after="blocking_call") for each in (gone, later)
    ]
    assert [0.72, 0.78] == [
        of_service(each, "gilscope_gil_wait_seconds_sum", interpreter="0", after="blocking_call")
        for each in (gone, later)
    ]


def test_what_a_worker_has_counted_between_two_scrapes_stays() -> None:
    """
    It has ended before the next one, and somebody has seen it meanwhile.
    """
    agent = ScrapedAgent()
    agent.scrape(worker(2, waits=4))
    agent.look(worker(1, waits=30), worker(2, waits=4))
    gone = agent.scrape(worker(2, waits=6))
    agent.look(worker(2, waits=6))
    later = agent.scrape(worker(2, waits=6))

    assert [36, 36] == [of_service(each, CONVOYS, interpreter="0") for each in (gone, later)]


def test_what_the_last_worker_of_a_service_has_counted_is_told_once_more() -> None:
    """
    Nobody of it is left at the next scrapes, of which there may be several by different agents.
    """
    agent = ScrapedAgent()
    other = replace(PROCESS, name="other.py")
    agent.scrape(worker(1, waits=2), worker(2, process=other))
    agent.look(replace(worker(1, waits=25), ended=True), worker(2, process=other))
    agent.look(worker(2, process=other))
    told = [
        of_service(agent.scrape(worker(2, process=other)), CONVOYS, interpreter="0")
        for _ in range(10)
    ]

    assert [25] * 8 + [None] * 2 == told


def test_who_is_seen_and_never_scraped_is_not_remembered() -> None:
    """
    A host of which the page alone is looked at has no more memory of each process that has ended.
    """
    sums = ServiceSums(add_target, service_of)
    for pid in range(1000):
        sums.note([Observation(gil=worker(pid, at_ns=pid * NS_PER_S))])

    assert 1 == len(sums._last)  # noqa: SLF001 - memory is no figure


def test_a_worker_that_cannot_be_read_once_is_not_counted_twice() -> None:
    """
    What was seen of it stays until it is seen again.
    """
    agent = ScrapedAgent()
    agent.scrape(worker(1, waits=30), worker(2, waits=4))
    broken = replace(worker(1), invalid="for a moment")
    during = agent.scrape(broken, worker(2, waits=6))
    after = agent.scrape(worker(1, waits=31), worker(2, waits=6))

    assert [36, 37] == [of_service(each, CONVOYS, interpreter="0") for each in (during, after)]


def test_nothing_falls_whatever_a_worker_tells() -> None:
    """
    Neither a number nor a time, where one of both alone runs back.
    """
    agent = ScrapedAgent()
    lock = gil(blocking_call=histogram(60_000 * MS))
    long = replace(worker(1), totals=replace(worker(1).totals, gils=(lock,)))
    short = replace(lock, waits=gil(blocking_call=histogram(18_000 * MS)).waits)
    told = [
        of_service(
            agent.scrape(replace(long, totals=replace(long.totals, gils=(each,)))),
            "gilscope_gil_wait_seconds_sum",
            interpreter="0",
            after="blocking_call",
        )
        for each in (lock, short, gil())
    ]

    assert [60.0, 60.0, 60.0] == told


def test_a_worker_that_is_not_trusted_leaves_what_it_had() -> None:
    """
    And says so; where none is trusted nothing is told but that.
    """
    agent = ScrapedAgent()
    agent.scrape(worker(1, waits=3), worker(2, waits=4))
    broken = replace(worker(1), invalid="its probe has gone")
    half = agent.scrape(broken, worker(2, waits=4))
    none = agent.scrape(broken, replace(worker(2), invalid="likewise"))
    again = agent.scrape(broken, replace(worker(2, waits=1), since_ns=5))

    assert 0 == of_service(half, "gilscope_probe_valid", method="sites")
    assert 7 == of_service(half, CONVOYS, interpreter="0")
    assert 1 == of_service(half, "gilscope_target_processes")
    assert ["gilscope_probe_valid"] == [
        sample.name
        for family in none.families
        for sample in family.samples
        if sample.labels.get("process")
    ]
    assert 8 == of_service(again, CONVOYS, interpreter="0")


def test_a_service_that_has_gone_has_no_series() -> None:
    """
    It continues where it was if it comes back within minutes, and else begins anew.
    """
    agent, other = ScrapedAgent(), replace(PROCESS, name="b.py")
    agent.scrape(replace(worker(1, waits=3), ended=True), worker(9, process=other))
    none = agent.scrape(worker(9, 60_000 * MS, process=other))
    soon = agent.scrape(worker(1, 100_000 * MS, waits=1), worker(9, 100_000 * MS, process=other))
    agent.scrape(worker(9, 110_000 * MS, process=other))
    agent.scrape(worker(9, 411_000 * MS, process=other))
    late = agent.scrape(replace(worker(1, 412_000 * MS, waits=1), since_ns=411_000 * MS))

    assert of_service(none, CONVOYS, interpreter="0") is None
    assert 4 == of_service(soon, CONVOYS, interpreter="0")
    assert 1 == of_service(late, CONVOYS, interpreter="0")


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
    agent, number = ScrapedAgent(), 0
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
            replace(worker(pid, at_ns, waits=alive[pid]), since_ns=pid, ended=pid in ended)
            for pid in alive
        ]
        figures = agent.scrape(*seen)
        now = _counters(figures)

        assert [] == [key for key, value in before.items() if now[key] < value]
        assert gone + sum(alive.values()) == of_service(figures, CONVOYS, interpreter="0")
        before = now
        for pid in ended:
            gone += alive.pop(pid)
    assert number > 10
