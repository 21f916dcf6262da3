"""``gilscope serve``: who kept whom waiting, as two scrapers and a person see it."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from accuracy.truth import Workload, started
from support.commands.gilscope import eventually
from support.commands.serve import Scrape, Service, serving
from support.paths import WORKLOADS

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_SOURCE = WORKLOADS / "convoy.py"
_BLOCKED = "gilscope_gil_blocked_seconds_total"
_WAITED = "gilscope_gil_thread_wait_seconds_total"


def _crunching() -> str:
    """Return the site at which the threads of convoy.py compute."""
    lines = _SOURCE.read_text().splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if "sum(range(20000))" in line]
    return f"crunch (convoy.py:{number})"


def _scraped(service: Service, workload: Workload) -> Scrape:
    """Return the first scrape in which the threads' one pair has lost a second."""
    pair = {"waiter": _crunching(), "holder": _crunching(), "pid": str(workload.pid)}
    eventually(lambda: service.scrape().total(_BLOCKED, **pair) > 1, within_s=30)
    return service.scrape()


def _others(scrape: Scrape) -> set[str]:
    return {sample.labels["waiter"] for sample in scrape.samples(_BLOCKED)}


def test_pair_is_exported_and_shown() -> None:
    """
    Threads that compute keep each other waiting, at the line where they do.
    """
    with (
        started([_PYTHON], "convoy.py") as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        scrape = _scraped(service, workload)
        page = service.get("/").text

    assert {"other", _crunching()} <= _others(scrape)
    assert f">{_crunching()}<" in page
    assert ">GIL_PREEMPTION<" in page


def test_two_scrapers_do_not_disturb_each_other() -> None:
    """
    For neither of them any counter falls.
    """

    def scrapes(service: Service) -> list[Scrape]:
        return [service.scrape() for _ in range(15)]

    with (
        started([_PYTHON], "convoy.py", "--cpu-threads", "3") as workload,
        serving("-p", str(workload.pid)) as service,
        ThreadPoolExecutor(2) as pool,
    ):
        _scraped(service, workload)
        both = [pool.submit(scrapes, service) for _ in range(2)]
        seen = [future.result() for future in both]

    for one in seen:
        for before, now in pairwise(one):
            values = now.counters()
            fallen = [name for name, value in before.counters().items() if values[name] < value]
            assert [] == fallen


def test_pairs_have_lost_what_the_roles_have() -> None:
    """
    To the nanosecond, once all waits are over.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        service.scrape()
        workload.run()
        scrape = service.scrape()

    assert scrape.total(_WAITED) > 0.1
    assert scrape.total(_BLOCKED) == pytest.approx(scrape.total(_WAITED), abs=1e-8)


def test_number_of_pairs_is_bounded() -> None:
    """
    With one slot all other pairs share a series; without any there is none.
    """
    with started([_PYTHON], "convoy.py") as workload:
        with serving("-p", str(workload.pid), "--pairs", "1") as service:
            few = _scraped(service, workload)
        with serving("-p", str(workload.pid), "--pairs", "0") as service:
            eventually(lambda: service.scrape().total(_WAITED) > 1, within_s=30)
            none = service.scrape()

    assert {"other", _crunching()} == _others(few)
    assert [] == none.samples(_BLOCKED)
