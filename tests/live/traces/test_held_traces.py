"""Requests that keep the GIL for known times, in a program that publishes which it serves."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from accuracy.truth import Workload, started
from support.commands.gilscope import eventually
from support.commands.serve import Service, serving
from support.interpreters.known import ONE_PER_MINOR, Interpreter
from support.tracing.trace import command_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_OPENMETRICS = "application/openmetrics-text; version=1.0.0"
_SCRIPT = "holding_requests.py"
_ROUNDS = 6
_INTERVAL_S = 0.005
_LATE_S = 0.01
"""From the end of a hold until the next program says so, and of the request after its interval."""
_DROPS_S = {"a1": (0.30, 0.10), "b2": (0.20,)}
_HOLDS_S = {"a1": (0.30, 0.10, 0.15), "b2": (0.20,), "c3": (0.40,)}
_LONGEST_SPANS = {"a1": "01", "b2": "02", "c3": "04"}
_UNPUBLISHED_S = 0.25


def _process(service: Service) -> dict[str, Any]:
    (process,) = json.loads(service.get("/report?form=json&last=600").text)["processes"]
    found: dict[str, Any] = process
    return found


def _play(service: Service, workload: Workload) -> None:
    workload.command()
    assert workload.answer()["loaded"]
    eventually(lambda: _process(service)["traces"] is not None)
    for number in range(_ROUNDS):
        workload.command()
        assert number == workload.answer()["round"]
    assert workload.answer()["done"]


def _assert_known(
    found: Mapping[str, Any], known_s: Mapping[str, tuple[float, ...]], less_s: float
) -> None:
    by_trace = {each["trace_id"][:2]: each for each in found["worst"]}
    assert known_s.keys() == by_trace.keys()
    for name, times_s in known_s.items():
        each = by_trace[name]
        assert name * 16 == each["trace_id"]
        assert len(times_s) == each["times"]
        for known, told in ((sum(times_s), each["sum_s"]), (max(times_s), each["longest_s"])):
            times = len(times_s) if known == sum(times_s) else 1
            assert known - times * (less_s + _LATE_S) <= told <= known * 1.01 + times * _LATE_S
        assert _LONGEST_SPANS[name] * 8 == each["span_id"]
        assert ("/report" if name == "a1" else None) == each["route"]
    assert pytest.approx(sum(each["sum_s"] for each in found["worst"])) == found["sum_s"]
    assert sum(map(len, known_s.values())) == found["times"]


@pytest.mark.parametrize("interpreter", ONE_PER_MINOR)
def test_what_kept_the_gil_is_told_by_request(interpreter: Interpreter) -> None:
    """
    Slow drops and long holds, each in the request that the holder served, and in no other.

    They are the exemplars of their histograms.
    """
    with (
        started(command_of(interpreter), _SCRIPT) as workload,
        serving("-p", str(workload.pid), "--mode", "full") as service,
    ):
        _play(service, workload)
        process = _process(service)
        text = service.get("/report?form=text&full=1&last=600").text
        metrics = service.get("/metrics", Accept=_OPENMETRICS).text
        workload.finish()

    traces = process["traces"]
    _assert_known(traces["slow_drops"], _DROPS_S, _INTERVAL_S)
    _assert_known(traces["long_holds"], _HOLDS_S, 0)
    slow_s = sum(each["drop_latency_s"] for each in process["slow_drops"])
    unpublished_s = slow_s - traces["slow_drops"]["sum_s"]
    assert _UNPUBLISHED_S - _INTERVAL_S - _LATE_S <= unpublished_s <= _UNPUBLISHED_S + _LATE_S
    assert "Requests that were slow to release the GIL when asked" in text
    assert f"trace {'a1' * 16}" in text
    for family, trace in (("drop_latency", "a1"), ("hold", "c3")):
        lines = [
            line for line in metrics.splitlines() if line.startswith(f"gilscope_gil_{family}_")
        ]
        assert any(f'trace_id="{trace * 16}"' in line for line in lines)


def test_in_contention_mode_slow_drops_alone_are_told() -> None:
    """
    Holds are not seen there.
    """
    with (
        started(["/usr/bin/python3"], _SCRIPT) as workload,
        serving("-p", str(workload.pid), "--mode", "contention") as service,
    ):
        _play(service, workload)
        traces = _process(service)["traces"]
        workload.finish()

    _assert_known(traces["slow_drops"], _DROPS_S, _INTERVAL_S)
    assert traces["long_holds"] is None
