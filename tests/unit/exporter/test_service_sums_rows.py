"""Which rows the families of a service have."""

from dataclasses import replace

from support.recordings.gil import (
    MS,
    PROCESS,
    with_traces,
)
from support.recordings.locks import lock_recording
from support.recordings.transactions import stm_observation
from support.reports.scraped import OPEN_METRICS
from support.reports.services import CONVOYS, ScrapedAgent, of_service, worker


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
    figures = ScrapedAgent().scrape(
        *(worker(pid, waits=pid, process=each) for pid, each in enumerate(processes, start=1))
    )

    assert [1, 2, 3, 4] == [
        figures.value(
            CONVOYS,
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
    figures = ScrapedAgent().scrape(
        *(worker(n, process=replace(PROCESS, python=each)) for n, each in enumerate(pythons))
    )

    ((info,),) = [[each.labels] for each in figures.samples("gilscope_target_info")]
    assert "3.12.1" == info["version"]


def test_who_says_what_its_service_is_called_is_asked_first() -> None:
    """
    A server's first process may not say, and its only worker does.
    """
    said = (None, "shop", None)
    figures = ScrapedAgent().scrape(
        *(worker(n, process=replace(PROCESS, service=each)) for n, each in enumerate(said))
    )

    (info,) = figures.samples("gilscope_target_info")
    assert "shop" == info.labels["service"]


def test_exemplars_go_with_their_process() -> None:
    """
    Those of all that have ever been would be many.
    """
    agent = ScrapedAgent()
    before = agent.scrape(with_traces().observation, content_type=OPEN_METRICS)
    after = agent.scrape(worker(9), content_type=OPEN_METRICS)
    name = "gilscope_gil_wait_seconds_bucket"

    assert [each for each in before.samples(name) if each.exemplar]
    assert [] == [each for each in after.samples(name) if each.exemplar]
    assert 0 < after.total(name)


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
    figures = ScrapedAgent().scrape(other, recorded, content_type=OPEN_METRICS)

    told = [each.exemplar for each in figures.samples("gilscope_gil_wait_seconds_bucket")]
    assert {"ab" * 16} == {each.labels["trace_id"] for each in told if each}


def test_routes_are_few_whatever_the_workers_of_months_have_named() -> None:
    """
    Each names some of its own; what is too many is under other, and all of it is told.
    """
    agent, recorded = ScrapedAgent(), with_traces().observation
    traces = recorded.totals.traces
    assert traces is not None
    (route, *_) = traces.routes
    for number in range(40):
        routes = tuple(
            replace(route, route=f"/r{number}/{each}", wait_ns=MS, waits=1, requests=1)
            for each in range(5)
        )
        totals = replace(recorded.totals, traces=replace(traces, routes=routes))
        ended = replace(recorded, totals=totals, since_ns=number, ended=True)
        agent.scrape(replace(ended, process=replace(PROCESS, pid=number)))
    figures = agent.scrape(worker(1, since_ns=99))

    for name in ("waits", "requests"):
        told = figures.samples(f"gilscope_gil_route_{name}_total")
        assert 101 == len(told)
        assert 200 == sum(each.value for each in told)
        assert 100 == of_service(figures, f"gilscope_gil_route_{name}_total", route="other")


def test_locks_and_transactions_of_a_service_are_sums() -> None:
    """
    A process whose locks are traced beside its GIL is one all the same.
    """
    locked = lock_recording().observation
    beside = replace(locked.process, pid=1)
    live = [stm_observation(pid=pid) for pid in (11, 12)]
    figures = ScrapedAgent().scrape(
        worker(1, waits=3),
        locks=[replace(locked, process=beside), replace(locked, process=replace(beside, pid=2))],
        transactions=[replace(each, process=replace(each.process, name="stm.py")) for each in live],
    )

    assert 0.06 == of_service(figures, "gilscope_lock_wait_seconds_total", kind="object")
    assert 10 == of_service(figures, "gilscope_lock_world_stops_total", cause="gc")
    assert 0.001 == of_service(figures, "gilscope_lock_overhead_ratio")
    assert 60 == figures.value(
        "gilscope_stm_transactions_total", process="stm.py", outcome="commit"
    )
    assert 60 == figures.value("gilscope_stm_transaction_seconds_count", process="stm.py")
    assert 2 == of_service(figures, "gilscope_target_processes")
    assert 2 == figures.value("gilscope_target_processes", process="stm.py")
