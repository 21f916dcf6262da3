"""Asks a serving gilscope for its figures."""

import re
import urllib.request
from collections.abc import Iterator

from bench.measurement import SelfReport
from bench.tool import Tool, ToolFailed
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

__all__ = ["Figures", "fetch_page", "read_figures", "self_report"]

_WITHIN_S = 60.0
_URL = re.compile(r"http://\S+/metrics")
_NS_PER_S = 1_000_000_000
_OVERHEAD = "gilscope_target_overhead_seconds_total"
_OBSERVED = "gilscope_gil_observed_seconds_total"


class Figures:
    """All samples of one scrape."""

    def __init__(self, text: str) -> None:
        self._families: tuple[Metric, ...] = tuple(text_string_to_metric_families(text))

    def samples(self, name: str, **labels: str) -> Iterator[Sample]:
        """Yield the samples of that name that bear *labels*."""
        for family in self._families:
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    yield sample

    def has(self, name: str) -> bool:
        """Return whether there is any sample of that name."""
        return next(self.samples(name), None) is not None

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of these samples, 0 where there are none."""
        return sum(sample.value for sample in self.samples(name, **labels))

    @property
    def traced(self) -> int:
        """How many processes are traced, and their probes trusted."""
        return round(self.total("gilscope_targets", state="traced"))

    @property
    def waits(self) -> int:
        """Finished waits for the GIL."""
        return round(self.total("gilscope_gil_wait_seconds_count"))

    @property
    def holds(self) -> int:
        """Finished holds that were followed."""
        return round(self.total("gilscope_gil_hold_seconds_count"))


def fetch_page(tool: Tool) -> str:
    """Return what ``/metrics`` answers now; raises ToolFailed."""
    url = _URL.search(tool.output)
    if url is None:
        raise ToolFailed("did not say where it serves")
    try:
        # S310: the pattern begins with http.
        with urllib.request.urlopen(url.group(), timeout=_WITHIN_S) as answer:  # noqa: S310
            text: str = answer.read().decode()
    except OSError as error:
        raise ToolFailed(f"did not answer: {error}") from error
    return text


def read_figures(tool: Tool) -> Figures:
    """Return the figures of now; raises ToolFailed if it traces nothing that it trusts."""
    figures = Figures(fetch_page(tool))
    if not figures.traced:
        raise ToolFailed("traced nothing: gilscope_targets has no traced process")
    return figures


def self_report(before: Figures, after: Figures) -> SelfReport:
    """Return what gilscope said of itself between two scrapes."""

    def grown_ns(name: str, **labels: str) -> int:
        return round(_NS_PER_S * (after.total(name, **labels) - before.total(name, **labels)))

    return SelfReport(
        overhead_ns=grown_ns(_OVERHEAD) if after.has(_OVERHEAD) else None,
        observed_ns=grown_ns(_OBSERVED, window="full"),
        elapsed_ns=grown_ns(_OBSERVED, window="all"),
        holds=after.holds - before.holds,
    )
