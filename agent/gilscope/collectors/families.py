"""The samples of a scrape, family by family."""

from gilscope.histogram import Histogram
from gilscope.metrics import Family
from gilscope.model import Process

__all__ = ["NS_PER_S", "Labels", "Series", "process_labels"]

NS_PER_S = 1_000_000_000

Labels = tuple[str, ...]
"""Values, in the order of the family's label names."""


class Series:
    """The samples of one family, to be added one by one."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: list[tuple[Labels, float]] = []
        """Counters and gauges."""
        self.histograms: list[tuple[Labels, Histogram]] = []

    def add(self, labels: Labels, value: float) -> None:
        """Add one counter or gauge."""
        self.values.append((labels, value))

    def add_ns(self, labels: Labels, ns: float) -> None:
        """Add one counter or gauge that is a time, in seconds."""
        self.values.append((labels, ns / NS_PER_S))

    def add_histogram(self, labels: Labels, histogram: Histogram) -> None:
        """Add one histogram of times."""
        self.histograms.append((labels, histogram))


def process_labels(process: Process) -> Labels:
    """Return the values of PROCESS_LABELS."""
    return (process.name, str(process.pid), process.container_id or "", process.pod_uid or "")
