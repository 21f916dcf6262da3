"""The one collector of ``serve``: reads the maps once a scrape and reports on itself."""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

import gilscope
from gilscope import metrics
from gilscope.collectors.families import NS_PER_S, Series
from gilscope.collectors.gil import gil_families
from gilscope.model import Observation, Refusal

__all__ = ["AgentCollector", "Source"]

_log = logging.getLogger(__name__)


class Source(Protocol):
    """Where the figures come from."""

    bcc_version: str

    def observe(self) -> Sequence[Observation]:
        """Return the state of every traced process now."""

    def refusals(self) -> Sequence[Refusal]:
        """Return the Pythons that were found and cannot be traced."""


class AgentCollector(Collector):
    """Keeps no figures of its own. A failure costs the figures about processes, not the scrape."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: so prometheus_client does not scrape at registration."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield all families of the metric table."""
        began_ns = time.monotonic_ns()
        observations: Sequence[Observation] = ()
        try:
            observations = self._source.observe()
            families = list(gil_families(observations))
            success = 1
        except Exception:  # noqa: BLE001 - whatever fails, the scrape goes on without it
            _log.exception("this scrape could not read the probes")
            families, success = [], 0
        yield from families
        yield from self._own(observations, success, time.monotonic_ns() - began_ns)

    def _own(
        self, observations: Sequence[Observation], success: int, took_ns: int
    ) -> Iterator[Metric]:
        states = Counter("invalid" if seen.invalid else "traced" for seen in observations)
        states["refused"] = len(self._source.refusals())
        targets = Series(metrics.TARGETS)
        for state in ("traced", "invalid", "refused"):
            targets.add((state,), states[state])
        yield targets.metric
        for family, labels, value in (
            (metrics.SCRAPE_DURATION, (), took_ns / NS_PER_S),
            (metrics.SCRAPE_SUCCESS, (), success),
            (metrics.BUILD_INFO, (gilscope.__version__, self._source.bcc_version), 1),
        ):
            series = Series(family)
            series.add(labels, value)
            yield series.metric
