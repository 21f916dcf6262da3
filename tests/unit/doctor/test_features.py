"""Tests of what is said about the ways in which gilscope works on a kernel."""

import errno
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gilscope.doctor.features import judge_features, judge_trap_cost
from gilscope.doctor.machine import Machine
from gilscope.doctor.syscall_trials import Attempt
from gilscope.model.diagnosis import Status, TrapCost

Attempts = Mapping[Attempt, int]

_OK, _WARNING, _MISSING = Status.OK, Status.WARNING, Status.MISSING


def _statuses(machine: Machine, attempts: Attempts) -> dict[str, Status]:
    return {feature.name: feature.status for feature in judge_features(machine, attempts)}


def _found(machine: Machine, attempts: Attempts) -> dict[str, str]:
    return {feature.name: feature.found for feature in judge_features(machine, attempts)}


_OLD_WAYS = {"holds": _WARNING, "placing": _WARNING}


@pytest.mark.parametrize(
    ("release", "not_the_best"),
    [
        (
            "5.4.0-216-generic",
            {"waits": _MISSING, "holds": _MISSING}
            | dict.fromkeys(("placing", "tables", "reading", "missed_runs"), _WARNING),
        ),
        ("5.8.0", _OLD_WAYS | {"tables": _WARNING, "missed_runs": _WARNING}),
        ("5.10.0-35-amd64", _OLD_WAYS | {"tables": _WARNING, "missed_runs": _WARNING}),
        ("5.15.0-119-generic", _OLD_WAYS | {"tables": _WARNING}),
        ("6.1.0-32-amd64", _OLD_WAYS),
        ("6.8.0-45-generic", _OLD_WAYS),
        ("6.10.0", {}),
        ("6.18.44", {}),
    ],
)
def test_features_by_kernel(
    machine: Machine, attempts: Attempts, release: str, not_the_best: dict[str, Status]
) -> None:
    """
    Each kernel has what came until then; only without ring buffers nothing is observed at all.
    """
    knows_rings = "waits" not in not_the_best
    answers = {**attempts, Attempt.RING: 0 if knows_rings else errno.EINVAL}

    assert not_the_best == {
        name: status
        for name, status in _statuses(replace(machine, release=release), answers).items()
        if status is not _OK
    }


def test_a_recent_kernel(machine: Machine, attempts: Attempts) -> None:
    """
    Everything works in the best way, and that way is told.
    """
    assert {
        "waits": "in all modes, with their causes",
        "holds": "full and auto mode; a probe brings the number of its process along",
        "placing": "probes as links: all sites of a kind at once",
        "tables": "take memory as they fill",
        "reading": "tables in batches of entries",
        "missed_runs": "the kernel's count of runs that it left out is passed on",
    } == _found(machine, attempts)


def test_the_reasons_of_an_old_kernel(machine: Machine, attempts: Attempts) -> None:
    """
    What is costlier or poorer names this kernel, and the one that does better.
    """
    found = _found(replace(machine, release="5.10.0-35-amd64"), attempts)

    links = "because this kernel is 5.10 and links that see all threads came with 6.10"
    assert found["holds"].endswith(f"windows of auto mode are rarer, {links}")
    assert found["placing"].startswith(f"probes one by one, as perf events, {links}: ")
    assert found["placing"].endswith("the fix for CVE-2025-38466 leaves them to CAP_SYS_ADMIN")
    assert found["tables"].endswith(
        "because this kernel is 5.10 and tables that may grow came with 6.1"
    )
    assert found["missed_runs"].endswith(
        "left out, because this kernel is 5.10 and that count came with 5.12"
    )


def test_without_ring_buffers(machine: Machine, attempts: Attempts) -> None:
    """
    Neither mode works, for one and the same reason.
    """
    old = replace(machine, release="5.4.0")

    found = _found(old, {**attempts, Attempt.RING: errno.EINVAL})

    assert (
        "not on this kernel: the probes wake gilscope through a ring buffer, because this kernel "
        "is 5.4 and these came with 5.8" == found["waits"] == found["holds"]
    )


@pytest.mark.parametrize(
    ("release", "number", "status"),
    [
        ("4.18.0-553.el8.x86_64", 0, _OK),
        ("5.4.0", errno.EPERM, _MISSING),
        ("5.10.0", errno.EPERM, _OK),
        ("5.10.0", errno.EINVAL, _MISSING),
    ],
    ids=["brought by the distribution", "old and refused", "refused", "taken out"],
)
def test_a_ring_buffer_that_was_made_decides(
    machine: Machine, attempts: Attempts, release: str, number: int, status: Status
) -> None:
    """
    The version decides only where a missing right left the attempt without an answer.
    """
    answers = {**attempts, Attempt.RING: number}

    assert status is _statuses(replace(machine, release=release), answers)["waits"]


def test_the_cost_of_a_trap() -> None:
    """
    Microseconds, two digits of them, and whether they were measured.
    """
    cost = TrapCost(full_ns=554.4, contention_ns=848.3, stepped_ns=9346.5, is_measured=True)

    check = judge_trap_cost(cost)

    assert (
        _OK,
        (
            "0.55 us where the GIL is acquired or released, 0.85 us at a wait, 9.3 us where it has "
            "to be single-stepped; measured"
        ),
    ) == (check.status, check.found)


def test_a_cost_that_could_not_be_measured() -> None:
    """
    The numbers that are used instead are told, as a warning.
    """
    cost = TrapCost(full_ns=2_000, contention_ns=3_000, stepped_ns=40_000, is_measured=False)

    check = judge_trap_cost(cost)

    assert (
        _WARNING,
        (
            "could not be measured here; taken for 2 us where the GIL is acquired or released, "
            "3 us at a wait, 40 us where it has to be single-stepped, to keep a budget in any case"
        ),
    ) == (check.status, check.found)


def test_a_cost_that_was_not_tried() -> None:
    """
    Without probes there is none, which the check of the probes explains.
    """
    check = judge_trap_cost(None)

    assert (Status.UNKNOWN, "not measured: see probes") == (check.status, check.found)
