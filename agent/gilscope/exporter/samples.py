"""The samples of a scrape, family by family."""

import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from gilscope.metrics.table import Family
from gilscope.model.histogram import Histogram
from gilscope.text.printable import LONGEST_LABEL, label
from gilscope.text.units import NS_PER_S

__all__ = ["Exemplar", "Labels", "Rows", "Series", "log_label"]


_MARK: Final = 13
"""Characters that tell logs apart whose names are no labels as they are."""

Labels = tuple[str, ...]
"""Values, in the order of the family's label names."""


class Exemplar(NamedTuple):
    """One of the times in a histogram, and where to read more of it."""

    ns: int
    at_unix_ns: int
    trace_id: str
    span_id: str


class Rows(Protocol):
    """What the samples of one family are added to."""

    def add(self, labels: Labels, value: float) -> None:
        """Add one counter or gauge."""

    def add_ns(self, labels: Labels, ns: float) -> None:
        """Add one counter or gauge that is a time, in seconds."""

    def add_histogram(
        self, labels: Labels, histogram: Histogram, exemplars: Iterable[Exemplar] = ()
    ) -> None:
        """Add one histogram of times."""


class Series:
    """The samples of one family, to be added one by one."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: list[tuple[Labels, float]] = []
        """Counters and gauges."""
        self.histograms: list[tuple[Labels, Histogram]] = []
        self.exemplars: dict[Labels, tuple[Exemplar, ...]] = {}
        """Of these, by their labels; the latest comes last."""
        self.begun_ns: dict[Labels, int] = {}
        """Since when those samples count, of the epoch, that do since before the agent's start."""

    def add(self, labels: Labels, value: float) -> None:
        """Add one counter or gauge."""
        self.values.append((labels, value))

    def add_ns(self, labels: Labels, ns: float) -> None:
        """Add one counter or gauge that is a time, in seconds."""
        self.values.append((labels, ns / NS_PER_S))

    def add_histogram(
        self, labels: Labels, histogram: Histogram, exemplars: Iterable[Exemplar] = ()
    ) -> None:
        """Add one histogram of times."""
        self.histograms.append((labels, histogram))
        told = tuple(exemplars)
        if told:
            self.exemplars[labels] = told

    def extend(self, other: "Series") -> None:
        """Add all samples of *other*, which is of the same family and has none of these labels."""
        self.values += other.values
        self.histograms += other.histograms
        self.exemplars |= other.exemplars
        self.begun_ns |= other.begun_ns


def log_label(name: str) -> str:
    """Return the value of the label ``log`` for the log *name*, of which no other log has the same.

    A name that cannot be a label as it is ends in a digest of it: what stays of two may be equal.
    """
    if label(name) == name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{label(name, LONGEST_LABEL - _MARK)}~{digest[: _MARK - 1]}"
