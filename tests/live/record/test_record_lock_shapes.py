"""``gilscope record --locks`` of programs of many shapes: crowds, forks, other interpreters."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.interpreters.known import FREE_THREADED, ONE_PER_MINOR, Interpreter
from support.tracing.lock_waits import of_thread, recorded_locks, waits_started

pytestmark = pytest.mark.live

_TOLERANCE = 0.01
_PREEMPTED = 0.05
_TRAPS_NS = 8000
"""What those at both ends of a wait may take; half of it is usual."""
_ORDINARY = [each for each in ONE_PER_MINOR if getattr(each, "id", None) == "debian-3.14"]

# The build of 3.13 leaves out the module that makes others.
_WITH_INTERPRETERS = [
    each for each in FREE_THREADED if getattr(each, "id", None) != "free-threaded-3.13"
]


def _assert_exact(truth: Mapping[str, Any], report: Mapping[str, Any]) -> int:
    """Compare what all threads that hold the lock have slept; return how many they are."""
    holding = {tid: known for tid, known in truth["threads"].items() if known["waits"]}
    for tid, known in holding.items():
        seen = of_thread(report, tid)
        assert known["sleeps"] == seen["sleeps"]
        assert known["slept_ns"] / 1e9 == pytest.approx(seen["slept_s"], rel=_TOLERANCE)
    return len(holding)


def _assert_all_is_told(truth: Mapping[str, Any], report: Mapping[str, Any]) -> None:
    """Compare what all threads together have waited from wanting to having."""
    wait_ns = sum(known["wait_ns"] for known in truth["threads"].values())
    seen_s = sum(of_thread(report, tid)["wait_s"] for tid in truth["threads"])
    # An uncontended acquire takes some time as well.
    assert wait_ns / 1e9 == pytest.approx(seen_s, rel=_TOLERANCE)


@pytest.mark.parametrize("interpreter", [*FREE_THREADED[:1], *_ORDINARY])
def test_two_hundred_threads_that_want_one_lock(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Each has waited for most of the time, and has its own sums.
    """
    with waits_started(interpreter, sleep_clock, "crowd") as workload:
        truth, report, text = recorded_locks(workload, tmp_path)

    assert 200 == _assert_exact(truth, report)
    _assert_all_is_told(truth, report)
    assert {} == report["lost_events"]
    assert "in hold" in text


@pytest.mark.parametrize("interpreter", FREE_THREADED)
def test_waits_of_microseconds(interpreter: Interpreter, sleep_clock: Path, tmp_path: Path) -> None:
    """
    Tens of thousands, and each lasts as long as its thread has seen but for the traps at its ends.
    """
    with waits_started(interpreter, sleep_clock, "brief") as workload:
        truth, report, _ = recorded_locks(workload, tmp_path)

    waits = [
        wait
        for thread in report["threads"]
        for wait in thread["waits"]
        if wait["frames"] and "compete" == wait["frames"][0]["function"]
    ]
    known = truth["threads"].values()
    acquires = sum(each["waits"] for each in known)
    seen = sum(wait["waits"] for wait in waits if wait["kind"] == "lock")
    unseen_ns = sum(each["wait_ns"] for each in known) - 1e9 * sum(
        wait["wait_s"] for wait in waits if wait["kind"] != "idle"
    )
    assert 10_000 < acquires, "the machine was busy with others; this proves nothing"
    # Who loses its CPU while it takes a lock that is free has not waited for it.
    assert acquires == pytest.approx(seen, rel=_PREEMPTED)
    assert 0 < unseen_ns / seen < _TRAPS_NS


@pytest.mark.parametrize("interpreter", FREE_THREADED)
def test_children_neither_suffer_nor_count(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Forks stop the world, and leave the probes in each child, whose threads wait for a lock.
    """
    with waits_started(interpreter, sleep_clock, "forks") as workload:
        truth, report, _ = recorded_locks(workload, tmp_path)

    children = truth["children"]
    assert 3 == _assert_exact(truth, report)
    assert children["ended"] == children["well"] > 5
    assert "fork" in {
        stop["frames"][0]["function"]
        for stop in report["world_stops"]
        if stop["cause"] == "other" and stop["frames"]
    }


@pytest.mark.parametrize("interpreter", [*_WITH_INTERPRETERS, *_ORDINARY])
def test_threads_of_other_interpreters(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    They are in the lists of their own interpreters, and stand where they wait.
    """
    with waits_started(interpreter, sleep_clock, "interpreters") as workload:
        truth, report, _ = recorded_locks(workload, tmp_path)

    assert 6 == _assert_exact(truth, report)
    _assert_all_is_told(truth, report)
    # While an interpreter is being made, the thread that makes it has no state in any list.
    assert set(report["lost_events"]) <= {"stack_unknown"}
