"""An agent whose series are those of services, and workers for it to trace."""

from collections.abc import Sequence
from dataclasses import replace

from gilscope.exporter.collector import AgentCollector
from gilscope.exporter.kept_counters import KeptCounters
from gilscope.exporter.targets import Targets
from gilscope.model.gil import GilObservation, Process, Tally
from gilscope.model.kinds import Kind
from gilscope.model.locks import LockObservation
from gilscope.model.transactions import StmObservation
from gilscope.series.blocking import BlockingSeries
from support.recordings.gil import MS, PROCESS, gil, histogram, observation, thread
from support.reports.scraped import PLAIN, Fixed, Scrape, read

__all__ = ["CONVOYS", "WAITS", "ScrapedAgent", "of_service", "worker"]

WAITS = "gilscope_gil_wait_seconds_count"
CONVOYS = "gilscope_gil_convoy_waits_total"


class ScrapedAgent:
    """One that is scraped again and again."""

    def __init__(self, kept: KeptCounters | None = None) -> None:
        """Continue the counters of *kept*."""
        self._seen = Fixed()
        book = BlockingSeries(by_service=True)
        targets = Targets(book, kept)
        self._observe = targets.noting(self._seen.observe)
        self._collector = AgentCollector(self._seen.source, book, targets=targets)

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

    def look(self, *gils: GilObservation) -> None:
        """See these while nobody scrapes."""
        self._seen.observations = gils
        self._observe()


def worker(
    pid: int,
    at_ns: int = 1000 * MS,
    *,
    waits: int = 0,
    process: Process = PROCESS,
    since_ns: int = 0,
) -> GilObservation:
    """Return one whose threads have had so many waits of 20 ms, all of them convoys."""
    lock = replace(gil(blocking_call=histogram(*[20 * MS] * waits)), convoy_waits=waits)
    lost = {Kind.CONVOY: Tally(waits * 20 * MS, waits)}
    seen = observation((thread(1, "serve (app.py:8)", lost),), (lock,))
    totals = replace(seen.totals, at_ns=at_ns)
    return replace(seen, process=replace(process, pid=pid), totals=totals, since_ns=since_ns)


def of_service(figures: Scrape, name: str, **labels: str) -> float | None:
    """Return a sample of the service of these workers."""
    return figures.value(name, process=PROCESS.name, **labels)
