"""Native histograms, in a Prometheus that takes them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from accuracy.truth import started
from support.commands.gilscope import eventually
from support.commands.json_reports import only_process
from support.commands.serve import Service, serving
from support.deploy.dashboards import DASHBOARDS, targets, with_values
from support.prometheus.rules import RULES
from support.prometheus.server import Prometheus, prometheus, scraping

pytestmark = [pytest.mark.live, pytest.mark.slow]

_WAITS = "gilscope_gil_wait_seconds"
_HOLDS_S = (0.05, 0.10, 0.20, 0.25, 0.30, 0.35)
"""Of the workload, sorted: each is one wait."""
_TRACES = {"b2" * 16, "c3" * 16}
"""Of the longest wait of each size."""
_TOLERANCE = 0.05
_HANDED_OVER_S = 0.01
"""From the release of the GIL until the thread that was woken has it, on a busy machine."""
_RECORDED = (
    "process:gilscope_gil_drop_latency_seconds:rate5m",
    "process:gilscope_gil_slow_drop_requests:rate5m",
)


@dataclass(frozen=True, slots=True)
class _Watched:
    """A service, and a Prometheus that has scraped all waits of a process."""

    service: Service
    prometheus: Prometheus

    def number(self) -> float | None:
        """Return how many waits there were."""
        return self.value(f"histogram_count(sum({_WAITS}))")

    def value(self, expr: str) -> float | None:
        """Return the one value of *expr*; None: it has none."""
        values = self.prometheus.now(expr).values()
        return values[0] if values else None


@pytest.fixture(scope="module")
def watched() -> Iterator[_Watched]:
    """Six waits of known length, of which each knows its request."""
    with (
        started(["/usr/bin/python3"], "traced_requests.py") as workload,
        serving("-p", str(workload.pid)) as service,
        prometheus(
            scraping(f"{service.host}:{service.port}"),
            rules=[RULES / "gil.yml"],
            features=("native-histograms", "exemplar-storage"),
        ) as server,
    ):
        workload.command()
        assert workload.answer()["loaded"]
        eventually(
            lambda: (
                only_process(service.get("/report?form=json&last=600").text)["traces"] is not None
            )
        )
        found = _Watched(service, server)
        # It has waited for less than all of these while it began.
        eventually(lambda: found.number() is not None)
        before = found.number()
        assert before is not None
        for _ in _HOLDS_S:
            workload.command()
            workload.answer()
        assert workload.answer()["done"]
        eventually(lambda: found.number() == before + len(_HOLDS_S))
        yield found
        workload.finish()


def test_quantiles_are_within_a_twentieth(watched: _Watched) -> None:
    """
    Of the exact ones; no classic buckets have been taken beside.
    """
    number = watched.number()
    assert number is not None
    for at, exact_s in enumerate(reversed(_HOLDS_S)):
        share = 1 - (at + 0.5) / number
        told_s = watched.value(f"histogram_quantile({share}, sum({_WAITS}))")

        assert told_s is not None
        least_s, most_s = exact_s * (1 - _TOLERANCE), exact_s + _HANDED_OVER_S
        assert least_s <= told_s <= most_s * (1 + _TOLERANCE)
    assert watched.value(f"{_WAITS}_bucket") is None


def test_exemplars_come_with_them(watched: _Watched) -> None:
    """
    Older versions of Prometheus take one of each histogram.
    """

    def traces() -> set[str]:
        exemplars = watched.prometheus.exemplars(_WAITS)
        return {each["labels"]["trace_id"] for each in exemplars}

    eventually(traces)
    assert traces() <= _TRACES


def test_dashboards_and_rules_work_on_them(watched: _Watched) -> None:
    """
    Every query about waits has the same kind of answer as with classic buckets.
    """
    asked = {
        name: target["expr"]
        for name, target in targets(DASHBOARDS["process"])
        if f"{_WAITS}_" in target["expr"] and "convoy" not in target["expr"]
    }
    assert 4 < len(asked)
    for name, expr in asked.items():
        answer = watched.prometheus.now(with_values(expr, __rate_interval="1m", __range="5m"))
        assert answer.series, name
        assert not answer.warnings, name
    for name in _RECORDED:
        eventually(partial(_is_known, watched, name))


def _is_known(watched: _Watched, name: str) -> bool:
    return watched.value(name) is not None
