"""Workers that come and go, whose figures are those of one service."""

from collections.abc import Iterator, Mapping

import pytest

from accuracy.truth import exact_counts, started
from support.commands.gilscope import eventually
from support.commands.serve import Scrape, Service, serving

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3.11"
_SCRIPT = "exact_count.py"
_WAITS = "gilscope_gil_wait_seconds_count"
_CONVOYS = "gilscope_gil_convoy_waits_total"
_KEPT_S = 30
"""For so long the figures of a process that has ended are seen."""


@pytest.fixture
def service() -> Iterator[Service]:
    """Yield an agent that looks for the workers."""
    with serving("--match", _SCRIPT, "--mode", "contention", by_service=True) as agent:
        yield agent


class _Scraped:
    """An agent that is scraped again and again, and whose counters must not fall."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._counters: Mapping[str, float] = {}

    def scrape(self) -> Scrape:
        """Return what is told now."""
        scrape = self._service.scrape()
        now = scrape.counters()
        of_service = {name: value for name, value in self._counters.items() if _SCRIPT in name}
        assert [] == [name for name, value in of_service.items() if now[name] < value]
        self._counters = now
        return scrape

    def processes(self) -> float:
        """Return how many workers there are."""
        return self.scrape().total("gilscope_target_processes", process=_SCRIPT)

    def counted(self) -> tuple[float, float]:
        """Return the waits after blocking calls, and the convoys among them."""
        scrape = self.scrape()
        return (
            scrape.total(_WAITS, process=_SCRIPT, after="blocking_call"),
            scrape.total(_CONVOYS, process=_SCRIPT),
        )


def test_a_service_has_counted_what_all_its_workers_have(service: Service) -> None:
    """
    To the last wait, of those that have ended too; nothing falls, and nothing has a pid.
    """
    agent = _Scraped(service)
    with started([_PYTHON], _SCRIPT) as one, started([_PYTHON], _SCRIPT) as other:
        eventually(lambda: agent.processes() == 2)
        exact_counts(one.run())
        eventually(lambda: agent.counted() == (23, 7))
        exact_counts(other.run())
        eventually(lambda: agent.counted() == (46, 14))
    eventually(lambda: agent.processes() == 0)
    with started([_PYTHON], _SCRIPT) as third:
        eventually(lambda: agent.processes() == 1)
        assert (46, 14) == agent.counted()
        # The first two are forgotten by then.
        eventually(
            lambda: agent.scrape().total("gilscope_targets", state="traced") == 1,
            within_s=2 * _KEPT_S,
        )
        assert (46, 14) == agent.counted()
        exact_counts(third.run())
        eventually(lambda: agent.counted() == (69, 21))
    assert not [
        sample
        for family in agent.scrape().families
        for sample in family.samples
        if "pid" in sample.labels
    ]
