"""What is written is what the library would have written."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics import parser
from prometheus_client.parser import text_string_to_metric_families

from gilscope.exporter.collector import AgentCollector
from gilscope.exporter.exposition import encode, negotiate
from gilscope.exporter.samples import Series
from gilscope.metrics.table import GIL_WAIT, Family
from support.recordings.gil import (
    PROCESS,
    full_mode,
    gil,
    histogram,
    observation,
    with_traces,
)
from support.reports.scraped import OPEN_METRICS, PLAIN, Fixed, scrape

_PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;"
    "q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
_PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.2"
)

_MAKERS: dict[str, Callable[..., Any]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


class _Library:
    """Hands series to the library in its own form."""

    def __init__(self, families: list[Series]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        """Return all of them."""
        return [_for_library(each) for each in self._families]


def _for_library(series: Series) -> Metric:
    family = series.family
    made = _MAKERS[family.type](family.name, family.help, labels=family.labels)
    for labels, value in series.values:
        made.add_metric(labels, value)
    for labels, times in series.histograms:
        buckets = [(repr(bound_ns / 1e9), count) for bound_ns, count in times.cumulative()]
        made.add_metric(labels, [*buckets, ("+Inf", times.count)], sum_value=times.sum_ns / 1e9)
    assert isinstance(made, Metric)
    return made


def _registry(families: list[Series]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Library(families))
    return registry


def _open_metrics(families: list[Series]) -> str:
    text: bytes = openmetrics.generate_latest(_registry(families))  # type: ignore[no-untyped-call]
    return text.decode()


def _parse(text: str) -> Iterable[Metric]:
    families: Iterable[Metric] = parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return families


def _everything() -> list[Series]:
    nasty = replace(PROCESS, pid=1, name='a "quoted"\\ name\nof two lines é')
    observations = [full_mode().observation, replace(full_mode().observation, process=nasty)]
    return list(AgentCollector(Fixed(observations).source).collect())


def test_plain_text_says_what_the_library_says() -> None:
    """
    The same families and samples in the same order, with whatever needs escaping.
    """
    families = _everything()

    ours = text_string_to_metric_families(encode(families, PLAIN).decode())
    theirs = text_string_to_metric_families(generate_latest(_registry(families)).decode())

    assert list(theirs) == list(ours)


def test_open_metrics_say_what_the_library_says() -> None:
    """
    Also by the library's strict parser.
    """
    families = _everything()

    ours = encode(families, OPEN_METRICS).decode()
    theirs = _open_metrics(families)

    assert list(_parse(theirs)) == list(_parse(ours))
    assert ours.endswith("\n# EOF\n")


def test_a_family_as_a_whole() -> None:
    """
    Labels in the order of the table; only OpenMetrics cut the end of a counter's name in its head.
    """
    series = Series(Family("waits_total", "counter", 'Some "waits".', "", ("of", "in")))
    series.add(("a", "b"), 7)
    series.add_ns(("c", ""), 1_500_000_000)
    samples = 'waits_total{of="a",in="b"} 7\nwaits_total{of="c",in=""} 1.5\n'

    plain = f'# HELP waits_total Some "waits".\n# TYPE waits_total counter\n{samples}'
    opened = f'# HELP waits Some \\"waits\\".\n# TYPE waits counter\n{samples}# EOF\n'
    assert (plain, opened) == tuple(
        encode([series], form).decode() for form in (PLAIN, OPEN_METRICS)
    )


def test_a_family_without_samples_is_announced() -> None:
    """
    What could come is known from the first scrape on.
    """
    lines = encode([Series(GIL_WAIT)], PLAIN).decode().splitlines()

    assert ["# HELP gilscope_gil_wait_seconds", "# TYPE gilscope_gil_wait_seconds"] == [
        " ".join(line.split()[:3]) for line in lines
    ]


def test_overflow_counts_only_under_inf() -> None:
    """
    A wait longer than the last bucket is counted under +Inf and nowhere else.
    """
    figures = scrape(observation(gils=(gil(preemption=histogram(1 << 40)),)))

    def bucket(le: str) -> float | None:
        return figures.of_process(
            "gilscope_gil_wait_seconds_bucket", interpreter="0", after="preemption", le=le
        )

    assert 0 == bucket(repr((1 << 34) / 1e9))
    assert 1 == bucket("+Inf")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", PLAIN),
        ("text/html", PLAIN),
        ("text/plain;version=0.0.4", PLAIN),
        (_PROMETHEUS_2, OPEN_METRICS),
        (_PROMETHEUS_3, OPEN_METRICS),
    ],
)
def test_clients_get_the_form_that_the_library_would_choose(accept: str, expected: str) -> None:
    """
    Without the remark on how names are escaped, for none is.
    """
    assert expected == negotiate(accept)
    assert choose_encoder(accept)[1].startswith(expected)


def _collector() -> AgentCollector:
    return AgentCollector(Fixed([with_traces().observation]).source)


def _exemplars(series: str) -> dict[str, Any]:
    text = encode(_collector().collect(), OPEN_METRICS).decode()
    return {
        sample.labels["le"]: sample.exemplar
        for family in parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
        if sample.name == series and sample.exemplar is not None
    }


def test_a_slow_drop_is_an_exemplar_too() -> None:
    """
    It leads to the request that did not release the GIL.
    """
    ((bucket, exemplar),) = _exemplars("gilscope_gil_drop_latency_seconds_bucket").items()

    assert "1.073741824" == bucket
    assert {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "0102010201020102"} == (
        exemplar.labels
    )
    assert 0.3 == exemplar.value


def test_exemplars_are_in_the_bucket_of_their_wait() -> None:
    """
    In OpenMetrics alone; each leads to the trace and the span in which the wait was.
    """
    found = _exemplars("gilscope_gil_wait_seconds_bucket")

    assert {"0.067108864", "0.016777216"} == found.keys()
    longest = found["0.067108864"]
    assert {
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "span_id": "00f067aa0ba902b7",
    } == longest.labels
    assert (0.02, 1_790_000_000.0) == (longest.value, float(longest.timestamp))
    assert b"trace_id" not in encode(_collector().collect(), PLAIN)
