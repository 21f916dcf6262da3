"""Waits by request in a program that a tracer from the package registry traces, unchanged."""

import os
from typing import Any

import pytest

from accuracy.truth import started
from support.commands.gilscope import eventually
from support.commands.json_reports import frames_of, only_process
from support.commands.serve import Service, serving
from support.real.environment import environment

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("GILSCOPE_ALL_PROGRAMS"), reason="opt-in: make test-real"
    ),
]

_LEAST_IN_SPANS = 0.95
"""Of what the threads have waited; the rest is between two spans."""


def _report(service: Service) -> dict[str, Any]:
    return only_process(service.get("/report?form=json&last=600").text)


def test_each_wait_is_in_the_span_that_the_tracer_had_open() -> None:
    """
    Traces and spans by the ids that the program itself has seen.
    """
    python = environment("more_requirements.txt") / "python"
    with (
        started(["env", "DD_SERVICE=shop", str(python)], "traced_shop.py") as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        eventually(lambda: _report(service)["traces"] is not None)
        spans = workload.run()["spans"]
        # The threads of the tracer begin late, and have no role yet when they are young.
        eventually(lambda: all(each["role"] for each in _report(service)["threads"]))
        report = _report(service)
        workload.finish()
    traces = report["traces"]
    waited_s = sum(each["wait_s"] for each in report["threads"] if "checkout" in each["role"])

    assert "shop" == report["process"]["service"]
    assert 100 == len(traces["worst"])
    assert {each["trace_id"]: each["span_id"] for each in traces["worst"]}.items() <= spans.items()
    assert _LEAST_IN_SPANS * waited_s <= traces["wait_s"] <= waited_s
    # Where the budget allows the stacks of some waits only, others do not say behind whom.
    holders = [frames_of(report, each["holder"]) for each in traces["worst"]]
    assert {"refresh_prices"} == {frames[0]["function"] for frames in holders if frames}
