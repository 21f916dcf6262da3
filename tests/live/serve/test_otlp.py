"""``serve --otlp``: what is scraped is sent as well."""

from collections.abc import Callable

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from accuracy.truth import exact_counts, started
from support.commands.gilscope import gilscope
from support.commands.serve import serving
from support.reports.otlp_profiles import read
from support.web.otlp_receiver import Receiver, metrics_in, receiving

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PATIENCE_S = 30.0
_TABLE = "gilscope_gil_thread_waits_total"


def _sent(receiver: Receiver, is_it: Callable[[float], bool]) -> Metric:
    """Return the histogram of waits of the first request whose number of waits is the one."""
    while True:
        sent = metrics_in(receiver.received.get(timeout=_PATIENCE_S).request)
        if _TABLE in sent and is_it(sum(each.as_double for each in sent[_TABLE].sum.data_points)):
            return sent["gilscope_gil_wait_seconds"]


def test_what_is_sent_is_what_is_scraped() -> None:
    """
    The process stands still after its rounds, so both are of the same sums.
    """
    with (
        receiving() as receiver,
        started(["/usr/bin/python3"], "exact_count.py") as workload,
        serving(
            *("-p", str(workload.pid), "--mode", "contention"),
            *("--otlp", receiver.url, "--otlp-every", "100ms"),
        ) as service,
    ):
        truth = exact_counts(workload.run())
        scrape = service.scrape()
        waits = scrape.total(_TABLE)
        points = _sent(receiver, lambda number: number == waits).histogram.data_points

    assert truth.waiter.total.waits <= waits
    assert waits == sum(point.count for point in points)
    assert pytest.approx(scrape.total("gilscope_gil_wait_seconds_sum")) == sum(
        point.sum for point in points
    )


def test_profiles_are_sent_once_each() -> None:
    """
    What all of them say was lost is what a scrape says, to the nanosecond.
    """
    with (
        receiving() as receiver,
        started(["/usr/bin/python3"], "exact_count.py") as workload,
        serving(
            *("-p", str(workload.pid), "--mode", "contention"),
            *("--otlp", receiver.url, "--otlp-every", "1h", "--otlp-profiles", "1s"),
        ) as service,
    ):
        exact_counts(workload.run())
        lost_ns = round(1e9 * service.scrape().total("gilscope_gil_thread_wait_seconds_total"))
        waits_ns = holders_ns = 0
        while waits_ns < lost_ns:
            received = receiver.received.get(timeout=_PATIENCE_S)
            profiles = read(received.body)
            waits_ns += sum(each.total for each in profiles if each.type[0] == "gil_wait")
            holders_ns += sum(each.total for each in profiles if each.type[0] == "gil_held_up")

    assert "/v1development/profiles" == received.path
    assert (lost_ns, lost_ns) == (waits_ns, holders_ns)


def test_what_cannot_be_sent_to_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Before anything is traced, and without what may be a secret.
    """
    wrong_url = gilscope("serve", "--all", "--otlp", "127.0.0.1:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "secret")
    wrong_headers = gilscope("serve", "--all", "--otlp", "http://127.0.0.1:4318")
    nowhere = gilscope("serve", "--all", "--otlp-profiles", "1s")

    assert [2, 2, 2] == [wrong_url.exit_code, wrong_headers.exit_code, nowhere.exit_code]
    assert "--otlp-profiles needs --otlp" in nowhere.messages
    assert "'127.0.0.1:4318' is not http://HOST:PORT" in wrong_url.messages
    assert "OTEL_EXPORTER_OTLP_HEADERS is not NAME=VALUE" in wrong_headers.messages
    assert "secret" not in wrong_headers.messages
