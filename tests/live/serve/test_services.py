"""Workers that come and go, whose figures are those of one service."""

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from accuracy.truth import started
from support.commands.gilscope import eventually
from support.commands.serve import Scrape, Service, serving
from support.paths import WORKLOADS

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3.11"
_SCRIPT = f"workers_{os.getpid()}.py"
"""Others run the same workload meanwhile, under its own name."""
_WAITS = "gilscope_gil_wait_seconds_count"
_KEPT_S = 30
"""For so long the figures of a process that has ended are seen."""


@pytest.fixture
def script(tmp_path: Path) -> str:
    """Return the path of exact_count.py under that name."""
    (tmp_path / _SCRIPT).symlink_to(WORKLOADS / "exact_count.py")
    return str(tmp_path / _SCRIPT)


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

    def continue_at(self, service: Service) -> None:
        """Scrape another one, which is to continue."""
        self._service = service

    def processes(self) -> float:
        """Return how many workers there are."""
        return self.scrape().total("gilscope_target_processes", process=_SCRIPT)

    def counted(self) -> float:
        """Return the waits of the threads that wait a known number of times."""
        samples = self.scrape().samples("gilscope_gil_thread_waits_total", process=_SCRIPT)
        return sum(each.value for each in samples if each.labels["role"].startswith("waiter ("))

    def counted_of_all(self) -> float:
        """Return the waits after blocking calls: where there is much to do others wait as well."""
        return self.scrape().total(_WAITS, process=_SCRIPT, after="blocking_call")


def test_what_a_worker_counts_after_the_last_scrape_is_not_lost(
    service: Service, script: str
) -> None:
    """
    It has ended, and been forgotten, before the next one.
    """
    agent = _Scraped(service)
    with started([_PYTHON], script):
        eventually(lambda: agent.processes() == 1)
        with started([_PYTHON], script) as worker:
            eventually(lambda: agent.processes() == 2)
            had = agent.counted()
            worker.run()
        last_s = time.monotonic()
        eventually(lambda: time.monotonic() > last_s + 1.5 * _KEPT_S, within_s=2 * _KEPT_S)

        assert had + 23 == agent.counted()
        assert 1 == agent.scrape().total("gilscope_targets", state="traced")


def test_a_service_has_counted_what_all_its_workers_have(service: Service, script: str) -> None:
    """
    To the last wait, 23 of each, also of those that have ended; nothing falls, nothing has a pid.
    """
    agent = _Scraped(service)
    with started([_PYTHON], script) as one, started([_PYTHON], script) as other:
        eventually(lambda: agent.processes() == 2)
        # Until it was ready a worker may have waited as well, on a machine with much to do.
        had = agent.counted()
        one.run()
        eventually(lambda: agent.counted() == had + 23)
        other.run()
        eventually(lambda: agent.counted() == had + 46)
    eventually(lambda: agent.processes() == 0)
    assert had + 46 == agent.counted()
    with started([_PYTHON], script) as third:
        eventually(lambda: agent.processes() == 1)
        had = agent.counted()
        # The first two are forgotten by then.
        eventually(
            lambda: agent.scrape().total("gilscope_targets", state="traced") == 1,
            within_s=2 * _KEPT_S,
        )
        assert had == agent.counted()
        third.run()
        eventually(lambda: agent.counted() == had + 23)
    assert not [
        sample
        for family in agent.scrape().families
        for sample in family.samples
        if "pid" in sample.labels
    ]


def test_counters_continue_when_the_agent_is_restarted(script: str, tmp_path: Path) -> None:
    """
    To the last wait, those after the last scrape included, and no counter of a service falls.
    """
    options = ("--match", _SCRIPT, "--mode", "contention", "--keep-counters")
    kept = tmp_path / "counters"
    with started([_PYTHON], script) as worker:
        with serving(*options, str(kept), by_service=True) as service:
            agent = _Scraped(service)
            eventually(lambda: agent.processes() == 1)
            had = agent.counted_of_all()
            worker.run()
            assert 0 == service.end().exit_code
        left = _left_in(kept)
        with serving(*options, str(kept), by_service=True) as service:
            agent.continue_at(service)
            eventually(lambda: agent.processes() == 1)
            assert had + 23 <= left == agent.counted_of_all()
            assert 0 == service.end().exit_code


def _left_in(kept: Path) -> int:
    """Return how many waits after blocking calls an agent has left in its file."""
    _, _, text = kept.read_text().partition("\n")
    rows = json.loads(text)["families"][_WAITS.removesuffix("_count")]
    return sum(
        count
        for (process, *_, after), (_, slots), _ in rows
        for _, count in slots
        if (process, after) == (_SCRIPT, "blocking_call")
    )


def test_after_an_agent_that_was_killed_counters_begin_at_0(script: str, tmp_path: Path) -> None:
    """
    The next one says so, and the file serves it.
    """
    options = ("--match", _SCRIPT, "--mode", "contention", "--keep-counters", str(tmp_path / "c"))
    with started([_PYTHON], script) as worker:
        with serving(*options, by_service=True) as service:
            agent = _Scraped(service)
            eventually(lambda: agent.processes() == 1)
            worker.run()
            eventually(lambda: agent.counted_of_all() >= 23)
            service.end(signal.SIGKILL)
        with serving(*options, by_service=True) as service:
            eventually(lambda: _Scraped(service).processes() == 1)
            assert 0 == _Scraped(service).counted_of_all()
            ended = service.end()
    assert "the last gilscope was killed before it could keep them" in ended.messages
    assert 0 == ended.exit_code
