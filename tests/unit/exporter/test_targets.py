"""How many series a service has, whatever its processes do."""

import hashlib
from dataclasses import replace
from http import HTTPStatus

from gilscope.exporter.collector import AgentCollector
from gilscope.exporter.exposition import encode
from gilscope.model.gil import (
    Edge,
    GilObservation,
    HeldBy,
    HolderSamples,
    SlowDrop,
    Tally,
    TracingCost,
)
from gilscope.model.kinds import Kind
from gilscope.series.blocking import BlockingSeries
from gilscope.web.compression import compressed
from support.recordings.gil import MS, PROCESS, full_mode, held_up_of, stack
from support.reports.scraped import OPEN_METRICS, Fixed, read

_S = 1000 * MS
_KINDS = (Kind.BLOCKING_CALL, Kind.PREEMPTION, Kind.CONVOY)


def _busy(pid: int, step: int) -> GilObservation:
    """Return a process that loses more and more at many places, in threads of many roles."""
    recorded = full_mode().observation
    places = [stack((f"work_{line}", "/srv/app.py", line, line)) for line in range(1 + pid, 40)]
    first = recorded.totals.threads[0]
    threads = [
        replace(
            first,
            tid=tid,
            role=f"role {tid}",
            lost={kind: Tally(step * tid * MS, step) for kind in Kind},
        )
        for tid in range(1, 20)
    ]
    edges = [
        Edge(kind, places[0], place, Tally(step * at * 20 * MS, step))
        for at, place in enumerate(places, start=1)
        for kind in _KINDS
    ]
    slow = [SlowDrop(place, Tally(step * 15 * MS, step), 20 * MS) for place in places]
    held = tuple(HeldBy(place, step * 30 * MS) for place in places)
    totals = replace(
        recorded.totals,
        at_ns=step * _S,
        threads=tuple(threads),
        edges=tuple(edges),
        slow_drops=tuple(slow),
        held_up=held_up_of(edges),
        holder_samples=HolderSamples(1000 * step, step * _S, held),
        cost=TracingCost(3 * MS, 0.02, 7, stack_share=0.5),
        lost_events={"began_unseen": 1, "abandoned": 2, "table_full": 1},
    )
    return replace(recorded, process=replace(PROCESS, pid=pid), totals=totals)


def _series(book: BlockingSeries, *, processes: int) -> int:
    seen = Fixed()
    collector = AgentCollector(seen.source, book)
    for step in range(1, 40):
        seen.observations = [_busy(pid, step) for pid in range(processes)]
        figures = read(collector)
    return sum("process" in each.labels for family in figures.families for each in family.samples)


def test_a_service_has_150_series_at_most() -> None:
    """
    By default in auto mode, where each of its processes has one GIL.
    """
    several = _series(BlockingSeries(by_service=True), processes=3)

    assert 140 <= several <= 150
    assert several == _series(BlockingSeries(by_service=True), processes=1)


def test_who_wants_more_can_have_them() -> None:
    """
    With more pairs there are more roles and other places as well, or those of each process.
    """
    assert 300 < _series(BlockingSeries(50, by_service=True), processes=3)
    assert 600 < _series(BlockingSeries(), processes=2)


def test_a_scrape_of_many_services_is_small() -> None:
    """
    Of 200 of them at most 1.5 MB, as Prometheus gets it.
    """
    seen = Fixed()
    collector = AgentCollector(seen.source, BlockingSeries(by_service=True))
    for step in range(1, 5):
        seen.observations = [_service(number, step) for number in range(20)]
        text = encode(collector.collect(), OPEN_METRICS)
    _, _, body = compressed((HTTPStatus.OK, {}, text), "gzip")

    assert 20 * 140 < text.count(b'process="')
    assert len(body) < 1_500_000 / 10


def _service(number: int, step: int) -> GilObservation:
    process = replace(
        PROCESS,
        name=f"service_{number}.py",
        pid=number,
        container_id=hashlib.sha256(bytes([number])).hexdigest(),
    )
    return replace(_busy(number % 3, step), process=process)
