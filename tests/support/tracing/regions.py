"""Gives regions to workloads from within a test."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import begin_loading
from gilscope.gil.tracing.account import GilAccount
from gilscope.process.attachment import Retention
from gilscope.regions.listener import RegionListener, listening_socket
from gilscope.regions.places import Places
from gilscope.regions.words import Words
from gilscope.runtimes.site_cache import SiteCache
from support.paths import AGENT

__all__ = ["region_probe", "region_tracer", "regions_given", "with_client"]

CLIENT = AGENT / "client"


@pytest.fixture(scope="session")
def region_probe() -> Iterator[GilProbe]:
    """Probes that were compiled to give regions."""
    with GilProbe(begin_loading(regions=True)) as loaded:
        yield loaded


@pytest.fixture
def region_tracer(region_probe: GilProbe, site_cache: SiteCache) -> Iterator[GilAccount]:
    """An account of GILs whose processes may ask for their regions."""
    made = GilAccount(region_probe, site_cache)
    yield made
    made.close()
    made.drop_ended(Retention(0), set())


@contextmanager
def regions_given(tracer: GilAccount, socket_path: Path) -> Iterator[RegionListener]:
    """Answer the processes that *tracer* traces, as `gilscope serve --regions` does."""
    places = Places(tracer.probe.tables, tells_holds=False)
    with (
        Words(places.room) as words,
        closing(RegionListener(places, words, tracer.attached)) as listener,
        listening_socket(str(socket_path), listener.answer),
    ):
        tracer.probe.before_detach = listener.end
        yield listener


def with_client(python: Sequence[str], socket_path: Path) -> list[str]:
    """Return the command line of a Python that finds gilscope_client, and the agent."""
    return ["env", f"PYTHONPATH={CLIENT}", f"GILSCOPE_REGIONS={socket_path}", *python]
