"""What a program reads of its own waits is what is counted of them, to the nanosecond."""

from pathlib import Path

import pytest

from accuracy.truth import started
from gilscope.gil.tracing.account import GilAccount
from support.tracing.observations import thread_of
from support.tracing.regions import regions_given, with_client
from support.tracing.trace import missed_events, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_ROUNDS = 7


def test_regions_have_the_waits_of_their_thread(region_tracer: GilAccount, tmp_path: Path) -> None:
    """
    Seven regions with one wait each, all of them in another one, and one without any.
    """
    path = tmp_path / "regions.sock"
    with (
        started(with_client([_PYTHON], path), "regions.py") as workload,
        regions_given(region_tracer, path),
    ):
        region_tracer.attach(workload.pid)
        workload.command()
        assert {"connected": True} == workload.answer()
        workload.command("play")
        result = workload.answer()
        observation = observation_of(region_tracer, workload.pid)

    seen = thread_of(observation, result["tid"])
    assert {} == missed_events(observation)
    assert _ROUNDS == seen.waits
    assert [_ROUNDS, seen.wait_ns, None] == result["all"]
    assert [1] * _ROUNDS == [waits for waits, _, _ in result["rounds"]]
    assert seen.wait_ns == sum(wait_ns for _, wait_ns, _ in result["rounds"])
    assert [0, 0, None] == result["none"]
