"""A scrape as a request of OTLP, read with OpenTelemetry's own messages."""

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

import gilscope
from gilscope.exporter.collector import AgentCollector
from gilscope.exporter.otlp import encode_otlp
from gilscope.exporter.samples import Series
from gilscope.metrics import table as metrics
from gilscope.model.histogram import BOUNDS_NS
from support.recordings.gil import MS, full_mode, histogram
from support.reports.scraped import Fixed, read
from support.web.otlp_receiver import metrics_in, request_in

_BEGAN_NS, _AT_NS = 1_800_000_000_000_000_000, 1_800_000_060_000_000_001
_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def _request(*series: Series) -> ExportMetricsServiceRequest:
    return request_in(encode_otlp(series, _BEGAN_NS, _AT_NS, "db7"))


def _labels(attributes: list[KeyValue]) -> dict[str, str]:
    return {each.key: each.value.string_value for each in attributes}


def test_all_figures_of_a_scrape_are_in_it() -> None:
    """
    Under the same names, with the same labels and values.
    """
    collector = AgentCollector(Fixed([full_mode().observation]).source)
    sent = metrics_in(_request(*collector.collect()))
    scraped = read(collector)
    counted = sent["gilscope_gil_thread_waits_total"].sum

    assert set(sent) == {
        each.family.name for each in collector.collect() if each.values or each.histograms
    }
    assert {"serve (app.py:8)": 125.0, "crunch (app.py:2)": 110.0} == {
        _labels(list(point.attributes))["role"]: point.as_double for point in counted.data_points
    }
    for point in counted.data_points:
        labels = _labels(list(point.attributes))
        assert {"process": "app.py", "pid": "4711", "role": labels["role"]} == labels
        assert point.as_double == scraped.of_process(
            "gilscope_gil_thread_waits_total", role=labels["role"]
        )


def test_counters_are_cumulative_sums() -> None:
    """
    Since the agent's start, and monotonic.
    """
    series = Series(metrics.AGENT_CPU)
    series.add((), 1.5)
    (metric,) = metrics_in(_request(series)).values()
    (point,) = metric.sum.data_points

    assert ("s", _CUMULATIVE, True) == (
        metric.unit,
        metric.sum.aggregation_temporality,
        metric.sum.is_monotonic,
    )
    assert (1.5, _BEGAN_NS, _AT_NS) == (
        point.as_double,
        point.start_time_unix_nano,
        point.time_unix_nano,
    )


def test_gauges_are_gauges() -> None:
    """
    With a unit where the name has one.
    """
    series = Series(metrics.AGENT_RESIDENT)
    series.add((), 48_000_000)
    (metric,) = metrics_in(_request(series)).values()

    assert ("By", [48e6]) == (metric.unit, [each.as_double for each in metric.gauge.data_points])


def test_histograms_have_every_bucket() -> None:
    """
    Not cumulative, one more than bounds; what is shorter than the first is in the first.
    """
    series = Series(metrics.GIL_WAIT)
    labels = ("app.py", "4711", "", "pod", *("x" for _ in metrics.GIL_WAIT.labels[4:]))
    series.add_histogram(labels, histogram(10, 1000, MS, MS, 20_000 * MS))
    (metric,) = metrics_in(_request(series)).values()
    (point,) = metric.histogram.data_points
    counts = list(point.bucket_counts)

    assert _CUMULATIVE == metric.histogram.aggregation_temporality
    assert [bound / 1e9 for bound in BOUNDS_NS] == list(point.explicit_bounds)
    assert len(BOUNDS_NS) + 1 == len(counts)
    assert (2, 2, 1, 5) == (counts[0], counts[3], counts[-1], sum(counts))
    assert (5, 20.002001010) == (point.count, point.sum)
    assert "pod" == _labels(list(point.attributes))["pod_uid"]
    assert "container_id" not in _labels(list(point.attributes))


def test_it_says_who_sends_it() -> None:
    """
    The resource is the agent; families without samples are left out.
    """
    request = _request(Series(metrics.GIL_WAIT))
    (resource,) = request.resource_metrics

    assert {
        "service.name": "gilscope",
        "service.version": gilscope.__version__,
        "host.name": "db7",
    } == _labels(list(resource.resource.attributes))
    assert {} == metrics_in(request)
