"""What is written for Prometheus with native histograms, read with its own definition of it."""

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from gilscope.exporter.exposition import encode, negotiate
from gilscope.exporter.native import CONTENT_TYPE, SCHEMA, native_buckets
from gilscope.exporter.samples import Exemplar, Series
from gilscope.metrics import table as metrics
from gilscope.model.histogram import BOUNDS_NS, EMPTY
from support.recordings.durations import histogram
from support.reports.scraped import OPEN_METRICS, PLAIN

_LABELS = ("app.py", "4711", "", "", "0", "preemption")
_TYPE = descriptor_pb2.FieldDescriptorProto
_DEFINITION: dict[str, list[tuple[str, int, int, str]]] = {
    "LabelPair": [("name", 1, _TYPE.TYPE_STRING, ""), ("value", 2, _TYPE.TYPE_STRING, "")],
    "Value": [("value", 1, _TYPE.TYPE_DOUBLE, "")],
    "Timestamp": [("seconds", 1, _TYPE.TYPE_INT64, ""), ("nanos", 2, _TYPE.TYPE_INT32, "")],
    "Exemplar": [
        ("label", 1, _TYPE.TYPE_MESSAGE, "*LabelPair"),
        ("value", 2, _TYPE.TYPE_DOUBLE, ""),
        ("timestamp", 3, _TYPE.TYPE_MESSAGE, "Timestamp"),
    ],
    "Bucket": [
        ("cumulative_count", 1, _TYPE.TYPE_UINT64, ""),
        ("upper_bound", 2, _TYPE.TYPE_DOUBLE, ""),
        ("exemplar", 3, _TYPE.TYPE_MESSAGE, "Exemplar"),
    ],
    "Span": [("offset", 1, _TYPE.TYPE_SINT32, ""), ("length", 2, _TYPE.TYPE_UINT32, "")],
    "Histogram": [
        ("sample_count", 1, _TYPE.TYPE_UINT64, ""),
        ("sample_sum", 2, _TYPE.TYPE_DOUBLE, ""),
        ("bucket", 3, _TYPE.TYPE_MESSAGE, "*Bucket"),
        ("schema", 5, _TYPE.TYPE_SINT32, ""),
        ("zero_threshold", 6, _TYPE.TYPE_DOUBLE, ""),
        ("positive_span", 12, _TYPE.TYPE_MESSAGE, "*Span"),
        ("positive_delta", 13, _TYPE.TYPE_SINT64, "*"),
        ("exemplars", 16, _TYPE.TYPE_MESSAGE, "*Exemplar"),
    ],
    "Metric": [
        ("label", 1, _TYPE.TYPE_MESSAGE, "*LabelPair"),
        ("gauge", 2, _TYPE.TYPE_MESSAGE, "Value"),
        ("counter", 3, _TYPE.TYPE_MESSAGE, "Value"),
        ("histogram", 7, _TYPE.TYPE_MESSAGE, "Histogram"),
    ],
    "MetricFamily": [
        ("name", 1, _TYPE.TYPE_STRING, ""),
        ("help", 2, _TYPE.TYPE_STRING, ""),
        ("type", 3, _TYPE.TYPE_INT32, ""),
        ("metric", 4, _TYPE.TYPE_MESSAGE, "*Metric"),
    ],
}
"""As client_model has them, as far as they are used: name, number, type, and of what kind; * for
many."""
_PROMETHEUS = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;"
    "q=0.7,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.2"
)


def _message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="metrics.proto", package="t", syntax="proto3")
    for name, fields in _DEFINITION.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of in fields:
            made = message.field.add(name=field, number=number, type=kind)
            made.label = _TYPE.LABEL_REPEATED if of.startswith("*") else _TYPE.LABEL_OPTIONAL
            if of.strip("*"):
                made.type_name = f".t.{of.strip('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.MetricFamily"))


def _families(content: bytes) -> Iterator[Any]:
    kind, at = _message_class(), 0
    while at < len(content):
        size = shift = 0
        while True:
            byte = content[at]
            size |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                break
        yield kind.FromString(content[at : at + size])
        at += size


def _written(series: Series) -> Any:
    (family,) = _families(encode([series], CONTENT_TYPE))
    return family


def _waits(*durations_ns: int, exemplars: tuple[Exemplar, ...] = ()) -> Series:
    series = Series(metrics.GIL_WAIT)
    series.add_histogram(_LABELS, histogram(*durations_ns), exemplars)
    return series


def _buckets(histogram: Any) -> list[tuple[int, int]]:
    """Return index and count of each native bucket, as its spans and deltas say."""
    found, index, count, deltas = [], 0, 0, iter(histogram.positive_delta)
    for span in histogram.positive_span:
        index += span.offset
        for _ in range(span.length):
            count += next(deltas)
            found.append((index, count))
            index += 1
    assert [] == list(deltas)
    return found


def test_counters_and_gauges() -> None:
    """
    With their labels, zeros among them.
    """
    series = Series(metrics.GIL_THREAD_WAITS)
    series.add(("app.py", "7", "", "", "crunch"), 5)
    series.add(("app.py", "8", "", "", "crunch"), 0)
    family = _written(series)

    assert (series.family.name, series.family.help, 0) == (family.name, family.help, family.type)
    assert [5, 0] == [metric.counter.value for metric in family.metric]
    assert all(metric.HasField("counter") for metric in family.metric)
    assert {
        "process": "app.py",
        "pid": "8",
        "container_id": "",
        "pod_uid": "",
        "role": "crunch",
    } == {pair.name: pair.value for pair in family.metric[1].label}
    gauge = Series(metrics.GIL_LONGEST_WAIT)
    gauge.add(("app.py", "7", "", ""), 2.5)
    assert (1, 2.5) == (_written(gauge).type, _written(gauge).metric[0].gauge.value)


def test_a_histogram_has_both_forms() -> None:
    """
    The classic buckets are those of the text, and the native ones count as many.
    """
    durations = (500, 1 << 14, (1 << 14) + 1, 5_000_000, 5_000_001, 1 << 40)
    (metric,) = _written(_waits(*durations)).metric
    told = metric.histogram

    assert (6, sum(durations) / 1e9) == (told.sample_count, told.sample_sum)
    assert [*(ns / 1e9 for ns in BOUNDS_NS), math.inf] == [each.upper_bound for each in told.bucket]
    assert [2, 3, 6] == [told.bucket[at].cumulative_count for at in (0, 1, -1)]
    assert SCHEMA == told.schema
    assert 6 == sum(count for _, count in _buckets(told))
    assert native_buckets(histogram(*durations).slots) == _buckets(told)


def test_a_histogram_of_nothing_is_native_too() -> None:
    """
    By a span of nothing: without one it would be a classic one.
    """
    series = Series(metrics.GIL_WAIT)
    series.add_histogram(_LABELS, EMPTY)
    (metric,) = _written(series).metric

    assert [(0, 0)] == [(each.offset, each.length) for each in metric.histogram.positive_span]
    assert 0 == metric.histogram.sample_count


@pytest.mark.parametrize("seed", range(3))
def test_native_buckets_are_within_a_twentieth(seed: int) -> None:
    """
    Of what is counted in them, whatever it is; from 64 ns on, of which slots are as narrow.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    for ns in (int(2 ** chance.uniform(6, 34)) for _ in range(2000)):
        ((index, count),) = native_buckets(histogram(ns).slots)
        lower_s, upper_s = (2 ** ((index - less) / 2**SCHEMA) for less in (1, 0))

        assert 1 == count
        assert lower_s / 1.05 <= ns / 1e9 <= upper_s * 1.05, ns


def test_exemplars_are_in_both_forms() -> None:
    """
    In the bucket that they belong to, and beside the native ones, with their time.
    """
    exemplar = Exemplar(5_000_000, 1_790_000_000_250_000_000, "4bf9", "00f0")
    (metric,) = _written(_waits(5_000_000, exemplars=(exemplar,))).metric
    (native,) = metric.histogram.exemplars
    with_one = [each for each in metric.histogram.bucket if each.HasField("exemplar")]

    assert [0.016777216] == [each.upper_bound for each in with_one]
    for told in (native, with_one[0].exemplar):
        assert {"trace_id": "4bf9", "span_id": "00f0"} == {p.name: p.value for p in told.label}
        assert (0.005, 1_790_000_000, 250_000_000) == (
            told.value,
            told.timestamp.seconds,
            told.timestamp.nanos,
        )


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (_PROMETHEUS, CONTENT_TYPE),
        (_PROMETHEUS.replace("q=0.7", "q=0.1"), OPEN_METRICS),
        (_PROMETHEUS.replace("delimited", "text"), OPEN_METRICS),
        ("application/vnd.google.protobuf", PLAIN),
        ("application/vnd.google.protobuf;q=many", PLAIN),
        ("text/plain", PLAIN),
        ("", PLAIN),
    ],
)
def test_messages_are_for_those_who_prefer_them(accept: str, chosen: str) -> None:
    """
    Such as Prometheus where it takes native histograms.
    """
    assert chosen.partition(";")[0] == negotiate(accept).partition(";")[0]
