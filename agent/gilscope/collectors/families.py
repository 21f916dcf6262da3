"""Makes prometheus_client's families from the project's metric table."""

from collections.abc import Callable
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from gilscope.histogram import Histogram
from gilscope.metrics import Family, Type
from gilscope.model import Process

__all__ = ["NS_PER_S", "Series", "process_labels"]

NS_PER_S = 1_000_000_000

# The three have no common type for what they take.
_MAKERS: dict[Type, Callable[..., Any]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


class Series:
    """The samples of one family, to be added one by one."""

    def __init__(self, family: Family) -> None:
        make = _MAKERS[family.type]
        self._metric = make(family.name, family.help, labels=family.labels)

    @property
    def metric(self) -> Metric:
        """What prometheus_client renders."""
        metric: Metric = self._metric
        return metric

    def add(self, labels: tuple[str, ...], value: float) -> None:
        """Add one counter or gauge."""
        self._metric.add_metric(labels, value)

    def add_histogram(self, labels: tuple[str, ...], histogram: Histogram) -> None:
        """Add one histogram, in seconds. What is beyond the last bound is in +Inf alone."""
        buckets = [(repr(bound_ns / NS_PER_S), count) for bound_ns, count in histogram.cumulative()]
        buckets.append(("+Inf", histogram.count))
        self._metric.add_metric(labels, buckets, sum_value=histogram.sum_ns / NS_PER_S)


def process_labels(process: Process) -> tuple[str, ...]:
    """Return the values of PROCESS_LABELS."""
    return (process.name, str(process.pid), process.container_id or "", process.pod_uid or "")
