"""Waits by request in a program that a tracer from the package registry traces, unchanged."""

import os

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope
from support.commands.json_reports import frames_of, only_process
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


def test_each_wait_is_in_the_span_that_the_tracer_had_open() -> None:
    """
    Traces and spans by the ids that the program itself has seen.
    """
    python = environment("more_requirements.txt") / "python"
    with started([str(python)], "traced_shop.py") as workload:
        workload.command()
        outcome = gilscope("record", "-p", str(workload.pid), "-d", "4", "--format", "json")
        spans = workload.run()["spans"]
        workload.finish()
    report = only_process(outcome.output)
    traces = report["traces"]
    waited_s = sum(each["wait_s"] for each in report["threads"] if "checkout" in each["role"])

    assert 100 == len(traces["worst"])
    assert {each["trace_id"]: each["span_id"] for each in traces["worst"]}.items() <= spans.items()
    assert _LEAST_IN_SPANS * waited_s <= traces["wait_s"] <= waited_s
    assert {"refresh_prices"} == {
        frames_of(report, each["holder"])[0]["function"] for each in traces["worst"]
    }
