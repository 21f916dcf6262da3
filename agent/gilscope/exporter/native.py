"""Writes families down as Protocol Buffers, which Prometheus asks for to get native histograms.

A histogram has both forms in it: the classic buckets, and a native bucket for each slot that the
probes tell apart, so that quantiles are within a twentieth. The messages are those of
io.prometheus.client, each with its size before it.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from gilscope.exporter.samples import Exemplar, Labels, Series
from gilscope.metrics.table import PID
from gilscope.model.histogram import BOUNDS_NS, SLOTS, Histogram, bound_ns, upto_bounds
from gilscope.text.protobuf import delimited, element, fraction, message, number, numbers, signed
from gilscope.text.units import NS_PER_S

__all__ = ["CONTENT_TYPE", "SCHEMA", "encode_native", "native_buckets"]

CONTENT_TYPE = (
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

SCHEMA = 8
"""Of native buckets: each is 0.3 % wide. The middle of a slot lies in one of them, and only those
are sent that count any, so that finer ones cost nothing."""

_TYPES = {"counter": 0, "gauge": 1, "histogram": 4}
_COUNTER, _GAUGE, _HISTOGRAM = 3, 2, 7
"""Where a metric has its value."""
_SMALLEST_S = 1e-9
_PID = PID.encode()
_INFINITE = (*(ns / NS_PER_S for ns in BOUNDS_NS), math.inf)


def encode_native(families: Iterable[Series]) -> bytes:
    """Return *families* as CONTENT_TYPE says; each is written before the next is asked for."""
    return b"".join(delimited(_family(series)) for series in families)


def native_buckets(slots: Sequence[int]) -> list[tuple[int, int]]:
    """Return the native buckets that count any of *slots*: index and count, in their order."""
    found: dict[int, int] = {}
    for slot, count in enumerate(slots):
        if count:
            index = _INDICES[slot]
            found[index] = found.get(index, 0) + count
    return sorted(found.items())


def _index(slot: int) -> int:
    """Return the index of the bucket in which the middle of *slot* lies, by its logarithm."""
    if slot == SLOTS - 1:
        # It counts whatever is longer.
        middle_s = BOUNDS_NS[-1] / NS_PER_S * 2 ** (1 / (1 << SCHEMA))
    else:
        lower_ns = bound_ns(slot - 1) if slot else 1
        middle_s = math.sqrt(lower_ns * bound_ns(slot)) / NS_PER_S
    return math.ceil(math.log2(middle_s) * (1 << SCHEMA))


_INDICES = tuple(_index(slot) for slot in range(SLOTS))


def _family(series: Series) -> bytes:
    family = series.family
    names = [name.encode() for name in family.labels]
    head = message(1, family.name.encode()) + message(2, family.help.encode())
    metrics = b"".join(element(4, metric) for metric in _metrics(series, names))
    return head + number(3, _TYPES[family.type]) + metrics


def _metrics(series: Series, names: Sequence[bytes]) -> Iterator[bytes]:
    at = _COUNTER if series.family.type == "counter" else _GAUGE
    for labels, value in series.values:
        yield _labelled(names, labels) + element(at, fraction(1, value))
    for labels, histogram in series.histograms:
        exemplars = series.exemplars.get(labels, ())
        yield _labelled(names, labels) + element(_HISTOGRAM, _histogram(histogram, exemplars))


def _labelled(names: Sequence[bytes], values: Labels) -> bytes:
    return b"".join(
        element(1, message(1, name) + message(2, value.encode()))
        for name, value in zip(names, values, strict=True)
        if value or name != _PID
    )


def _histogram(histogram: Histogram, exemplars: Sequence[Exemplar]) -> bytes:
    counts = upto_bounds(histogram.slots)
    of_bucket = {bisect_left(BOUNDS_NS, each.ns): each for each in exemplars}
    classic = b"".join(
        element(
            3,
            number(1, count)
            + fraction(2, bound_s)
            + (element(3, _exemplar(of_bucket[at])) if at in of_bucket else b""),
        )
        for at, (count, bound_s) in enumerate(zip(counts, _INFINITE, strict=True))
    )
    return b"".join(
        [
            number(1, counts[-1]),
            fraction(2, histogram.sum_ns / NS_PER_S),
            classic,
            number(5, signed(SCHEMA)),
            fraction(6, _SMALLEST_S),
            *_native(native_buckets(histogram.slots)),
            *(element(16, _exemplar(each)) for each in exemplars),
        ]
    )


def _native(buckets: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """Yield spans of buckets that follow each other, and how each count differs from the last."""
    if not buckets:
        yield element(12, b"")  # without a span it would not be a native one
        return
    end = 0
    for first, length in _spans([index for index, _ in buckets]):
        yield element(12, number(1, signed(first - end)) + number(2, length))
        end = first + length
    counts = [count for _, count in buckets]
    deltas = (now - before for now, before in zip(counts, (0, *counts), strict=False))
    yield numbers(13, map(signed, deltas))


def _spans(indices: Sequence[int]) -> Iterator[tuple[int, int]]:
    begin = 0
    for at in range(1, len(indices) + 1):
        if at == len(indices) or indices[at] != indices[at - 1] + 1:
            yield indices[begin], at - begin
            begin = at


def _exemplar(exemplar: Exemplar) -> bytes:
    seconds, ns = divmod(exemplar.at_unix_ns, NS_PER_S)
    labels = (("trace_id", exemplar.trace_id), ("span_id", exemplar.span_id))
    return (
        b"".join(element(1, message(1, n.encode()) + message(2, v.encode())) for n, v in labels)
        + fraction(2, exemplar.ns / NS_PER_S)
        + element(3, number(1, seconds) + number(2, ns))
    )
