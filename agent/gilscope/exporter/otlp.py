"""The families of a scrape as an OTLP request, in the JSON form of its messages.

Sums and histograms are cumulative since the agent's start, or since that of the agent before it
whose counters it continues. Names and labels are those of /metrics,
so that dashboards and rules work on either way; labels that are empty are left out, as Prometheus
does.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import gilscope
from gilscope.exporter.samples import Labels, Series
from gilscope.metrics.family import Family
from gilscope.model.histogram import BOUNDS_NS, Histogram, upto_bounds
from gilscope.text.units import NS_PER_S

__all__ = ["attributes", "encode_otlp"]

_SERVICE = "gilscope"
_CUMULATIVE = 2
"""AGGREGATION_TEMPORALITY_CUMULATIVE; enumerations are numbers in this form."""
_BOUNDS_S = [bound / NS_PER_S for bound in BOUNDS_NS]
_UNITS = {"_seconds": "s", "_bytes": "By"}


class _Times(NamedTuple):
    """When figures were counted, of the epoch."""

    began_ns: int
    at_ns: int

    def of(self, series: Series, labels: Labels) -> dict[str, str]:
        """Return the times of one sample."""
        began_ns = series.begun_ns.get(labels, self.began_ns)
        return {"startTimeUnixNano": str(began_ns), "timeUnixNano": str(self.at_ns)}


def encode_otlp(families: Iterable[Series], began_ns: int, at_ns: int, host: str) -> bytes:
    """Return the request: what *families* were at *at_ns*, since *began_ns*, both of the epoch.

    *host* is where the agent runs. A family without samples is left out.
    """
    about = {
        "service.name": _SERVICE,
        "service.version": gilscope.__version__,
        "host.name": host,
    }
    scope = {
        "scope": {"name": _SERVICE, "version": gilscope.__version__},
        "metrics": [
            _metric(series, _Times(began_ns, at_ns)) for series in families if _has_samples(series)
        ],
    }
    resource = {"attributes": attributes(about)}
    request = {"resourceMetrics": [{"resource": resource, "scopeMetrics": [scope]}]}
    return json.dumps(request, separators=(",", ":"), allow_nan=False).encode()


def _has_samples(series: Series) -> bool:
    return bool(series.values or series.histograms)


def _metric(series: Series, times: _Times) -> dict[str, Any]:
    family = series.family
    described = {"name": family.name, "description": family.help, "unit": _unit(family)}
    if family.type == "histogram":
        points = list(_histogram_points(series, times))
        return {
            **described,
            "histogram": {"aggregationTemporality": _CUMULATIVE, "dataPoints": points},
        }
    numbers = [
        {
            **times.of(series, labels),
            "attributes": _labels(family, labels),
            "asDouble": value,
        }
        for labels, value in series.values
    ]
    if family.type == "gauge":
        return {**described, "gauge": {"dataPoints": numbers}}
    return {
        **described,
        "sum": {
            "aggregationTemporality": _CUMULATIVE,
            "isMonotonic": True,
            "dataPoints": numbers,
        },
    }


def _unit(family: Family) -> str:
    name = family.name.removesuffix("_total")
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def _histogram_points(series: Series, times: _Times) -> Iterator[dict[str, Any]]:
    for labels, histogram in series.histograms:
        yield {
            **times.of(series, labels),
            "attributes": _labels(series.family, labels),
            "count": str(histogram.count),
            "sum": histogram.sum_ns / NS_PER_S,
            "bucketCounts": [str(count) for count in _buckets(histogram)],
            "explicitBounds": _BOUNDS_S,
        }


def _buckets(histogram: Histogram) -> list[int]:
    """Return the count of each bucket: up to each bound, and beyond the last."""
    cumulative = upto_bounds(histogram.slots)
    return [count - before for count, before in zip(cumulative, (0, *cumulative), strict=False)]


def _labels(family: Family, labels: Labels) -> list[dict[str, Any]]:
    return attributes(dict(zip(family.labels, labels, strict=True)))


def attributes(values: Mapping[str, str | int | None]) -> list[dict[str, Any]]:
    """Return *values* by their names; those that are empty are left out."""
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value]


def _value(value: str | int | None) -> dict[str, str]:
    # Whole numbers of 64 bits are text in this form.
    return {"intValue" if isinstance(value, int) else "stringValue": str(value)}
