"""Traces a workload from within a test: the probes, and a loop that looks after them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gilscope.budget.trap_costs import TrapCosts
from gilscope.gil.calibration.measure import measure_trap_costs
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from gilscope.process.attachment import Retention
from gilscope.runtimes.site_cache import SiteCache
from support.interpreters.known import Interpreter
from support.tracing.sites import shared_sites

__all__ = [
    "command_of",
    "looked_after",
    "missed_events",
    "observation_of",
    "probe",
    "site_cache",
    "tracer",
    "trap_costs",
]

_TICK_S = 0.02


def command_of(interpreter: Interpreter) -> list[str]:
    """Return a command line that also carries the environment; the pid stays the same."""
    settings = [f"{name}={value}" for name, value in interpreter.env.items()]
    return ["env", *settings, *interpreter.argv] if settings else list(interpreter.argv)


def missed_events(observation: GilObservation) -> dict[str, int]:
    """Return what was lost of waits and holds, by reason; an unknown stack is no loss of either."""
    lost = observation.totals.lost_events
    return {reason: count for reason, count in lost.items() if not reason.startswith("stack_")}


@contextmanager
def looked_after(tracer: GilAccount) -> Iterator[None]:
    """Call ``tick`` in the background as the commands do, and pass its failures on."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def look() -> None:
        try:
            while not ended.wait(_TICK_S):
                tracer.tick()
        except BaseException as error:  # noqa: BLE001 - it is raised in the test
            failures.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failures:
        raise failures[0]


def observation_of(tracer: GilAccount, pid: int) -> GilObservation:
    """Return what has been counted of *pid* until now."""
    (observation,) = [seen for seen in tracer.observe() if seen.process.pid == pid]
    return observation


@pytest.fixture(scope="session")
def probe() -> Iterator[GilProbe]:
    """The compiled probes; compiling them takes a second, so all tests share them."""
    with GilProbe() as loaded:
        yield loaded


@pytest.fixture(scope="session")
def trap_costs(probe: GilProbe) -> TrapCosts:
    """What a trap costs here; every command measures that before it traces."""
    return measure_trap_costs(probe)


@pytest.fixture(scope="session")
def site_cache() -> SiteCache:
    """Knows the builds that other tests have traced."""
    return shared_sites()


@pytest.fixture
def tracer(probe: GilProbe, site_cache: SiteCache) -> Iterator[GilAccount]:
    """An account of GILs."""
    made = GilAccount(probe, site_cache)
    yield made
    made.close()
    made.drop_ended(Retention(0), set())
