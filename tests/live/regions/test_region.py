"""What a program reads of its own waits is what is counted of them, to the nanosecond."""

from pathlib import Path

import pytest

from accuracy.truth import Workload, started
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from gilscope.process import procfs
from support.tracing.regions import regions_given, with_client
from support.tracing.trace import missed_events, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_ROUNDS = 7
_OWN_PIDS = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def test_regions_have_the_waits_of_their_thread(region_tracer: GilAccount, tmp_path: Path) -> None:
    """
    Seven regions with one wait each, all of them in another one, and one without any.
    """
    path = tmp_path / "regions.sock"
    with (
        started(with_client([_PYTHON], path), "regions.py") as workload,
        regions_given(region_tracer, path),
    ):
        _assert_exact(region_tracer, workload, workload.pid)


def test_regions_of_a_process_in_a_pid_namespace(region_tracer: GilAccount, tmp_path: Path) -> None:
    """
    It knows its threads by other numbers than the agent.
    """
    path = tmp_path / "regions.sock"
    mark = f"mark={path}"
    python = with_client([_PYTHON, "-X", mark], path)
    with (
        started([*_OWN_PIDS, *python], "regions.py") as workload,
        regions_given(region_tracer, path),
    ):
        assert 1 == workload.pid
        (pid,) = (pid for pid in procfs.list_pids() if _is_first_of_its_own(pid, mark))
        _assert_exact(region_tracer, workload, pid)


def _is_first_of_its_own(pid: int, mark: str) -> bool:
    try:
        status = procfs.read_status(pid)
        return mark in procfs.read_command_line(pid) and status.namespace_pids[1:] == (1,)
    except OSError:
        return False


def _assert_exact(tracer: GilAccount, workload: Workload, pid: int) -> None:
    tracer.attach(pid)
    workload.command()
    assert {"connected": True} == workload.answer()
    before_ns, before = _waited(observation_of(tracer, pid))
    workload.command("play")
    result = workload.answer()
    observation = observation_of(tracer, pid)
    wait_ns, waits = _waited(observation)

    assert {} == missed_events(observation)
    assert _ROUNDS == waits - before
    assert [_ROUNDS, wait_ns - before_ns, None] == result["all"]
    assert [1] * _ROUNDS == [waits for waits, _, _ in result["rounds"]]
    assert wait_ns - before_ns == sum(round_ns for _, round_ns, _ in result["rounds"])
    assert [0, 0, None] == result["none"]


def _waited(observation: GilObservation) -> tuple[int, int]:
    """Return for how many nanoseconds the worker has waited so far, and how often."""
    seen = [
        thread
        for thread in observation.totals.threads
        if (thread.role or "").startswith("worker (")
    ]
    return sum(thread.wait_ns for thread in seen), sum(thread.waits for thread in seen)
