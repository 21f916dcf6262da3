"""What live tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gilscope.gil.probe import GilProbe
from gilscope.gil.site_cache import SiteCache
from gilscope.gil.tracer import Tracer
from tracing import probe

__all__ = ["probe", "tracer"]


@pytest.fixture
def tracer(probe: GilProbe, tmp_path: Path) -> Iterator[Tracer]:
    """A tracer with a site cache of its own."""
    made = Tracer(probe, SiteCache(tmp_path / "sites"))
    yield made
    made.close()
    for pid in made.ended_pids:
        made.drop(pid)
