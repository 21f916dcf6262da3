"""``gilscope serve``: what it exposes over HTTP."""

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)

from accuracy.truth import ExactCounts, Workload, exact_counts, started
from gilscope.metrics import table as metrics
from support.commands.gilscope import gilscope
from support.commands.serve import Service, serving
from support.prometheus.tools import prometheus_tool

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3"
_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@dataclass(frozen=True, slots=True)
class _Served:
    """An agent that has watched a workload with a known answer; both stand still."""

    service: Service
    workload: Workload
    truth: ExactCounts

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of the samples of the workload that bear *labels*."""
        return self.service.scrape().total(name, pid=str(self.workload.pid), **labels)


@pytest.fixture(scope="module")
def served() -> Iterator[_Served]:
    """Serve exact_count.py once for all tests that only read."""
    with (
        started([_PYTHON], "exact_count.py") as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        yield _Served(service, workload, exact_counts(workload.run()))


def test_every_family_is_exposed_as_the_table_says(served: _Served) -> None:
    """
    The families, their types, help texts and labels are those of the metric table, no more.
    """
    found = {
        (family.name, family.type, family.documentation)
        for family in served.service.scrape().families
    }
    expected = {
        (family.name.removesuffix("_total"), family.type, family.help)
        for family in metrics.FAMILIES
    }

    assert expected == found


def test_every_sample_has_the_labels_of_its_family(served: _Served) -> None:
    """
    No label is missing and none is made up, on any sample.
    """
    labels = {family.name.removesuffix("_total"): family.labels for family in metrics.FAMILIES}
    seen = set()
    for family in served.service.scrape().families:
        for sample in family.samples:
            bounds = {"le"} if sample.name.endswith("_bucket") else set()

            assert {*labels[family.name], *bounds} == set(sample.labels), sample.name
            seen.add(family.name)
    # These have no samples before anything is lost, while the kernel keeps no statistics, where
    # nothing is captured, and where nothing runs transactions.
    silent = {metrics.LOST_EVENTS, metrics.AGENT_BPF_RUN_TIME, metrics.AGENT_BPF_RUNS}
    silent |= {metrics.CAPTURES, metrics.GIL_FAILED_WAKEUPS, metrics.GIL_FAILED_WAKEUP_WAIT}
    # All waits are seen.
    silent |= {metrics.GIL_WAIT_ERROR}
    # No logs are followed here, and nobody has transactions, or says which requests it serves.
    prefixes = ("gilscope_lock_", "gilscope_stm_", "gilscope_gil_route_")
    silent |= {family for family in metrics.FAMILIES if family.name.startswith(prefixes)}
    assert set(labels) - {family.name.removesuffix("_total") for family in silent} <= seen


def test_values_are_the_known_answer(served: _Served) -> None:
    """
    The exposed numbers are those that the workload knows.
    """
    truth, value = served.truth, served.value
    roles = {
        sample.labels["role"]
        for sample in served.service.scrape().samples("gilscope_gil_thread_waits_total")
    }
    (role,) = [role for role in roles if role.startswith("waiter (")]

    assert 23 == value("gilscope_gil_thread_waits_total", role=role)
    assert value("gilscope_gil_thread_wait_seconds_total", role=role) == pytest.approx(
        truth.waiter.total.wait_ns / 1e9, rel=0.02
    )
    for name, expected in (
        ("gilscope_gil_convoy_waits_total", truth.waiter.convoy_waits),
        ("gilscope_gil_waiting_threads", 0),
        ("gilscope_gil_longest_wait_seconds", 0),
        ("gilscope_probe_valid", 1),
        ("gilscope_lost_events_total", 0),
    ):
        assert expected == value(name), name
    if truth.is_exact:
        # On a machine that stalls, a short wait may last so long that it asks for a drop as well.
        assert truth.drop_requests == value("gilscope_gil_drop_latency_seconds_count")
    assert 23 <= value("gilscope_gil_wait_seconds_count", after="blocking_call")
    assert value("gilscope_gil_wait_seconds_count") == value("gilscope_gil_thread_waits_total")
    scrape = served.service.scrape()
    assert 1 == scrape.total("gilscope_targets", state="traced")
    assert 0 == scrape.total("gilscope_targets", state="refused")
    assert 0 == scrape.total("gilscope_targets", state="invalid")
    assert 1 == scrape.total("gilscope_scrape_success")


def test_histograms_are_cumulative_and_end_in_the_count(served: _Served) -> None:
    """
    Buckets never fall towards +Inf, which is the count.
    """
    scrape = served.service.scrape()
    for name in ("gilscope_gil_wait_seconds", "gilscope_gil_drop_latency_seconds"):
        series: dict[frozenset[tuple[str, str]], list[tuple[float, float]]] = {}
        for sample in scrape.samples(f"{name}_bucket"):
            key = frozenset((k, v) for k, v in sample.labels.items() if k != "le")
            series.setdefault(key, []).append((float(sample.labels["le"]), sample.value))
        for key, buckets in series.items():
            counts = [count for _, count in sorted(buckets)]

            assert counts == sorted(counts)
            assert scrape.total(f"{name}_count", **dict(key)) == counts[-1]


def test_promtool_has_nothing_to_say(served: _Served) -> None:
    """
    Prometheus' own linter accepts every name, type and help text.
    """
    checked = subprocess.run(
        [prometheus_tool("promtool"), "check", "metrics"],
        input=served.service.get("/metrics").text,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "", "") == (checked.returncode, checked.stdout, checked.stderr)


def test_openmetrics_is_spoken_where_it_is_asked_for(served: _Served) -> None:
    """
    A scraper that prefers OpenMetrics gets it, valid to its parser.
    """
    page = served.service.get("/metrics", Accept=_OPENMETRICS)
    families = parse_openmetrics(page.text)  # type: ignore[no-untyped-call]
    names = {family.name for family in families}

    assert page.headers["Content-Type"].startswith("application/openmetrics-text")
    assert {family.name.removesuffix("_total") for family in metrics.FAMILIES} == names


def test_landing_page_lists_the_targets(served: _Served) -> None:
    """
    The page names every traced process with its pid, Python and state.
    """
    page = served.service.get("/")

    assert 200 == page.status
    assert "text/html; charset=utf-8" == page.headers["Content-Type"]
    for words in (
        "exact_count.py",
        str(served.workload.pid),
        "3.11.2",
        "traced at its call sites",
    ):
        assert f">{words}<" in page.text
    assert "Found, but not traced" not in page.text


def test_health(served: _Served) -> None:
    """
    A living agent says ok.
    """
    page = served.service.get("/healthz")

    assert (200, "ok\n") == (page.status, page.text)


def test_unknown_paths(served: _Served) -> None:
    """
    What is not there is 404, and a query string changes nothing.
    """
    assert 404 == served.service.get("/nothing").status
    assert 404 == served.service.get("/metrics/").status
    assert 200 == served.service.get("/metrics?name=x").status


def test_head_has_headers_only(served: _Served) -> None:
    """
    HEAD answers as GET does, without the body.
    """
    page = served.service.get("/healthz", method="HEAD")

    assert (200, "3", "") == (page.status, page.headers["Content-Length"], page.text)


def test_other_methods_are_refused(served: _Served) -> None:
    """
    Nothing can be changed over HTTP.
    """
    assert 501 == served.service.get("/metrics", method="POST").status


def test_counters_never_run_back_nor_faster_than_time() -> None:
    """
    While waits begin and end, no counter falls and no thread gains more than the time that passed.
    """
    with (
        started([_PYTHON], "known_waits.py", "--seconds", "3") as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        workload.command()
        ended_s = time.monotonic() + 3.2
        scrapes = [service.scrape()]
        while scrapes[-1].after_s < ended_s:
            scrapes.append(service.scrape())
        workload.answer()
    threads: dict[str, int] = {}
    for name in workload.ready["threads"]:
        kind = name.partition("-")[0]
        threads[kind] = threads.get(kind, 0) + 1

    assert len(scrapes) > 50
    for before, now in pairwise(scrapes):
        values = now.counters()
        for series, value in before.counters().items():
            assert value <= values[series], series
        passed_s = now.after_s - before.before_s
        for sample in now.samples("gilscope_gil_thread_wait_seconds_total"):
            role = sample.labels["role"]
            gained_s = sample.value - before.total(sample.name, role=role)
            assert gained_s <= threads.get(role.partition(" ")[0], 1) * passed_s, role
    assert {"hog", "spinner", "io", "yielder"} <= {
        sample.labels["role"].partition(" ")[0]
        for sample in scrapes[-1].samples("gilscope_gil_thread_wait_seconds_total")
    }


def test_wait_in_flight_grows_with_time() -> None:
    """
    During a wait of three seconds its counter gains a second a second, and the gauges show it.
    """
    with (
        started([_PYTHON], "long_hold.py", "--seconds", "3") as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        workload.command("hold")
        scrapes = [service.scrape()]
        for tick in range(12):
            time.sleep(max(0.0, scrapes[0].before_s + 0.2 * (tick + 1) - time.monotonic()))
            scrapes.append(service.scrape())
        workload.answer()
    (role,) = [
        sample.labels["role"]
        for sample in scrapes[-1].samples("gilscope_gil_thread_wait_seconds_total")
        if sample.labels["role"].startswith("waiter (")
    ]
    waiting = [
        (scrape, scrape.total("gilscope_gil_thread_wait_seconds_total", role=role))
        for scrape in scrapes
        if scrape.total("gilscope_gil_waiting_threads") == 1
    ]

    assert len(waiting) >= 10
    for (before, had_s), (now, has_s) in pairwise(waiting):
        least_s, most_s = now.before_s - before.after_s, now.after_s - before.before_s
        assert least_s <= has_s - had_s <= most_s
        longest_s = now.total("gilscope_gil_longest_wait_seconds")
        assert longest_s == pytest.approx(has_s, abs=0.05)
    # The wait is counted when it is over.
    assert 0 == scrapes[-1].total("gilscope_gil_thread_waits_total", role=role)


def test_scraper_that_says_nothing_does_not_hold_it_up() -> None:
    """
    An open connection without a request keeps neither other scrapes nor the end waiting.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        serving("-p", str(workload.pid)) as service,
        socket.create_connection((service.host, service.port)),
    ):
        assert 200 == service.get("/healthz").status
        began_s = time.monotonic()

        assert 0 == service.end(signal.SIGTERM).exit_code
        assert time.monotonic() - began_s < 5


def test_request_that_is_none_is_answered(served: _Served) -> None:
    """
    Garbage instead of HTTP gets 400, and the next scraper its figures.
    """
    with socket.create_connection((served.service.host, served.service.port)) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01 garbage\r\n\r\n")
        connection.settimeout(10)

        assert b"400" in connection.makefile("rb").read()
    assert 200 == served.service.get("/metrics").status


def test_port_in_use(served: _Served) -> None:
    """
    An address that is taken gives exit code 9 and names the address.
    """
    address = f"{served.service.host}:{served.service.port}"
    outcome = gilscope("serve", "-p", str(served.workload.pid), "--listen", address)

    assert (9, "") == (outcome.exit_code, outcome.output)
    assert [
        f"error: cannot listen on {address}: Address already in use",
        "Choose another address with --listen HOST:PORT.",
    ] == outcome.messages.splitlines()
