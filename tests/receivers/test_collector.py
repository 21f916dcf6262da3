"""What a real OpenTelemetry Collector has got is what gilscope has counted."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
)
from prometheus_client.parser import text_string_to_metric_families

from accuracy.truth import exact_counts, started
from support.commands.gilscope import eventually, gilscope
from support.commands.http_server import answer
from support.commands.serve import Service, serving
from support.receivers.programs import Collector, collecting
from support.reports.otlp_profiles import profiles_in, read
from support.web.otlp_receiver import Receiver, receiving

pytestmark = pytest.mark.live

_CPU = "gilscope_agent_cpu_seconds_total", frozenset[tuple[str, str]]()
_BY_THE_COLLECTOR = ("job", "instance", "otel_scope_name", "otel_scope_version")
_MOVING = (
    "gilscope_scrape_duration_seconds",
    "gilscope_agent_resident_bytes",
    "gilscope_agent_private_bytes",
    "gilscope_target_overhead_ratio",
)
"""Gauges that are what they are at each moment."""

_Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def beyond() -> Iterator[Receiver]:
    """What the Collector passes profiles on to."""
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def collector(beyond: Receiver) -> Iterator[Collector]:
    """A Collector that knows of nothing yet."""
    with collecting(beyond.url) as running:
        yield running


def _figures(text: str) -> _Figures:
    return {
        (sample.name, frozenset(_labels(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("gilscope_")
    }


def _labels(labels: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in labels.items():
        if value and name not in _BY_THE_COLLECTOR and not name.startswith("otel_scope_"):
            yield name, str(float(value)) if name == "le" else value


def _scraped(service: Service) -> _Figures:
    return _figures(service.get("/metrics").text)


def _collected(collector: Collector, after: float) -> _Figures:
    """Return the first figures that were sent when the agent had used more time than *after*."""

    def later() -> _Figures:
        found = _figures(answer(collector.exporter, "/metrics")[1])
        return found if found.get(_CPU, 0.0) > after else {}

    return eventually(later)


@pytest.mark.parametrize("mode", ["auto", "full"])
def test_every_figure_arrives(collector: Collector, mode: str) -> None:
    """
    Under its name, with its labels: between those of a scrape before and of one after it.
    """
    with (
        started(["/usr/bin/python3"], "exact_count.py") as workload,
        serving(
            *("-p", str(workload.pid), "--mode", mode),
            *("--otlp", f"http://{collector.receiver}", "--otlp-every", "200ms"),
        ) as service,
    ):
        truth = exact_counts(workload.run())
        before = _scraped(service)
        sent = _collected(collector, before[_CPU])
        after = _scraped(service)

    assert set(before) == set(sent) == set(after)
    off = {
        key: (before[key], value, after[key])
        for key, value in sent.items()
        if key[0] not in _MOVING
        and not min(before[key], after[key]) <= value <= max(before[key], after[key])
    }
    assert {} == off
    assert truth.waiter.total.waits <= sum(
        value for (name, _), value in sent.items() if name == "gilscope_gil_thread_waits_total"
    )
    assert any(name == "gilscope_gil_wait_seconds_bucket" for name, _ in sent)


def test_profiles_pass_through(collector: Collector, beyond: Receiver, tmp_path: Path) -> None:
    """
    What comes out, in the other form of its messages, is what went in.
    """
    file = tmp_path / "waits.otlp.json"
    with started(["/usr/bin/python3"], "crowd.py") as workload:
        outcome = gilscope("record", "-p", str(workload.pid), "-d", "1", "-o", str(file))
    assert 0 == outcome.exit_code, outcome.messages
    request = urllib.request.Request(
        f"http://{collector.receiver}/v1development/profiles",
        file.read_bytes(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answered:  # noqa: S310 - likewise
        assert 200 == answered.status
    passed = beyond.received.get(timeout=10)
    profiles = profiles_in(ExportProfilesServiceRequest.FromString(passed.body))

    assert "/v1development/profiles" == passed.path
    assert ["gil_held_up", "gil_waits", "gil_wait", "gil_hold"] == [
        profile.type[0] for profile in profiles
    ]
    assert read(file.read_bytes()) == profiles
    assert profiles[0].total == profiles[2].total > 0
