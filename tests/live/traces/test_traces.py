"""Requests whose waits are known, in a program that publishes which its threads serve."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from accuracy.truth import Workload, started
from gilscope.text.units import seconds, short_duration
from support.commands.gilscope import eventually
from support.commands.serve import Service, serving
from support.interpreters.known import ONE_PER_MINOR, Interpreter
from support.reports.sums import exact
from support.tracing.trace import command_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = ["/usr/bin/python3"]
_SCRIPT = "traced_requests.py"
_SERVICE = "shop"
_TOLERANCE = 0.01
_HANDED_OVER_S = 0.01
"""From the release of the GIL until the thread that was woken has it, on a busy machine."""
_REQUESTS = {"a1": (0, 2), "b2": (1,), "c3": (4,)}
"""By the first byte of the trace, the rounds that are of it; the others are of none."""
_SUMS = ("wait_s", "waits", "longest_s", "holder")
_LONGEST_SPANS = {"a1": "01", "b2": "02", "c3": "04"}


def _process(service: Service) -> dict[str, Any]:
    (process,) = json.loads(service.get("/report?form=json&last=600").text)["processes"]
    found: dict[str, Any] = process
    return found


def _knows_all(process: Mapping[str, Any]) -> bool:
    # The library may have been found before the program had published what its keys stand for.
    return process["traces"] is not None and process["process"]["service"] == _SERVICE


def _played(
    service: Service, workload: Workload
) -> tuple[Mapping[str, Any], Mapping[str, Any], str]:
    """Let all rounds be played; return the report, its traces, and the text."""
    workload.command()
    assert workload.answer()["loaded"]
    eventually(lambda: _knows_all(_process(service)))
    for number in range(6):
        workload.command()
        assert number == workload.answer()["round"]
    assert workload.answer()["done"]
    process = _process(service)
    text = service.get("/report?form=text&full=1&last=600").text
    workload.finish()
    return process, process["traces"], text


@pytest.mark.parametrize(
    "options",
    [
        ["-mtls-dialect=gnu"],
        ["-mtls-dialect=gnu2"],
        ["-mtls-dialect=gnu2", "-DROOM=100000"],
        ["-ftls-model=initial-exec"],
    ],
    ids=["gnu", "gnu2", "gnu2 in a block of its own", "initial-exec"],
)
def test_waits_are_told_by_request(options: Sequence[str]) -> None:
    """
    However the library was compiled that publishes them: each wait in its own, and in no other.
    """
    with (
        started(_PYTHON, _SCRIPT, *options) as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        process, traces, text = _played(service, workload)

    _assert_right(process, traces)
    worst = traces["worst"][0]["trace_id"]
    assert f"trace {worst}" in text
    (checkout,) = [each for each in traces["routes"] if each["route"] == "/checkout"]
    assert f"3 traces waited for {seconds(exact(traces['wait_s']))}" in text
    assert f"/checkout: 1 request, {short_duration(exact(checkout['wait_s']))} each" in text


@pytest.mark.parametrize("interpreter", ONE_PER_MINOR)
def test_on_every_version(interpreter: Interpreter) -> None:
    """
    The thread state leads to the thread's variables in all of them.
    """
    with (
        started(command_of(interpreter), _SCRIPT) as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        process, traces, _ = _played(service, workload)

    _assert_right(process, traces)


def _assert_right(process: Mapping[str, Any], traces: Mapping[str, Any]) -> None:
    holds_s = (0.30, 0.25, 0.20, 0.10, 0.35, 0.05)
    found = {each["trace_id"][:2]: each for each in traces["worst"]}
    assert {f"{name * 16}" for name in _REQUESTS} == {each["trace_id"] for each in traces["worst"]}
    assert [4, 3] == [traces["waits"], traces["number"]]
    for name, rounds in _REQUESTS.items():
        known_s = sum(holds_s[number] for number in rounds)
        most_s = known_s * (1 + _TOLERANCE) + len(rounds) * _HANDED_OVER_S
        assert known_s <= found[name]["wait_s"] <= most_s
        assert len(rounds) == found[name]["waits"]
        assert _LONGEST_SPANS[name] * 8 == found[name]["span_id"]
        assert "hold_until_it_waits" == _function(process, found[name]["holder"])
    assert pytest.approx(sum(each["wait_s"] for each in traces["worst"])) == traces["wait_s"]
    # A route that is too long is cut; c3 has none.
    of_traces = {"/checkout": found["a1"], "/" + 62 * "x": found["b2"], None: found["c3"]}
    assert of_traces.keys() == {each["route"] for each in traces["routes"]}
    for each in traces["routes"]:
        known = of_traces[each["route"]]
        assert 1 == each["requests"]
        assert {name: known[name] for name in _SUMS} == {name: each[name] for name in _SUMS}
    assert _SERVICE == process["process"]["service"]


def _function(process: Mapping[str, Any], stack: int) -> str:
    frames: Sequence[int] = process["stacks"][stack]["frames"]
    return str(process["frames"][frames[0]]["function"])
