"""Tests of the judgement on the kernel's version and abilities."""

import errno
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gilscope.doctor.kernel import judge_abilities, judge_architecture, judge_release
from gilscope.doctor.machine import Machine
from gilscope.doctor.syscall_trials import Attempt
from gilscope.model.diagnosis import Check, Status

Attempts = Mapping[Attempt, int]


def _ability(name: str, machine: Machine, attempts: Attempts, *, placed: bool = False) -> Check:
    checks = judge_abilities(machine, attempts, can_place_uprobes=placed)
    (check,) = (check for check in checks if check.name == name)
    return check


@pytest.mark.parametrize(
    ("release", "status"),
    [
        ("5.8.0", Status.OK),
        ("5.7.19", Status.WARNING),
        ("6.18.44-fc", Status.OK),
        ("4.18.0-553.el8.x86_64", Status.WARNING),
    ],
)
def test_the_oldest_kernel(machine: Machine, release: str, status: Status) -> None:
    """
    5.8 will do; an older one is doubtful and left to the attempts.
    """
    check = judge_release(replace(machine, release=release))

    assert (status, True) == (
        check.status,
        check.found.startswith(f"Linux {release}; 5.8 is needed (for BPF ring buffers)"),
    )


def test_two_architectures_are_known(machine: Machine) -> None:
    """
    Another one fails with the code for a kernel that will not do; one was never tried.
    """
    check = judge_architecture(replace(machine, architecture="riscv64"))
    untried = judge_architecture(replace(machine, architecture="aarch64"))

    assert (Status.MISSING, 6) == (check.status, check.exit_code)
    assert "x86_64 and aarch64 only" in check.found
    assert (Status.WARNING, True) == (untried.status, "nothing was traced" in untried.found)
    assert Status.OK is judge_architecture(machine).status


def test_a_good_kernel_can_do_everything(machine: Machine, attempts: Attempts) -> None:
    """
    Four checks, all well.
    """
    checks = judge_abilities(machine, attempts, can_place_uprobes=False)

    assert [
        ("bpf", Status.OK),
        ("raw_tracepoints", Status.OK),
        ("uprobes", Status.OK),
        ("pidfd", Status.OK),
    ] == [(check.name, check.status) for check in checks]


@pytest.mark.parametrize(
    ("attempt", "feature"),
    [
        (Attempt.RING, "BPF ring buffers, which came with Linux 5.8"),
        (Attempt.PROGRAM, "bpf_probe_read_user, which came with Linux 5.5"),
        (Attempt.NAMESPACE_PROGRAM, "bpf_get_ns_current_pid_tgid, which came with Linux 5.7"),
    ],
)
def test_what_an_old_kernel_lacks(
    machine: Machine, attempts: Attempts, attempt: Attempt, feature: str
) -> None:
    """
    EINVAL means that the kernel does not know the feature, which is named with its version.
    """
    contained = replace(machine, in_first_pid_namespace=False)

    check = _ability("bpf", contained, {**attempts, attempt: errno.EINVAL})

    assert (Status.MISSING, f"this kernel does not know {feature}", 6) == (
        check.status,
        check.found,
        check.exit_code,
    )


def test_the_namespace_helper_is_needed_in_a_namespace_only(
    machine: Machine, attempts: Attempts
) -> None:
    """
    A kernel without bpf_get_ns_current_pid_tgid serves an agent in the first pid namespace.
    """
    lacking = {**attempts, Attempt.NAMESPACE_PROGRAM: errno.EINVAL}

    assert Status.OK is _ability("bpf", machine, lacking).status


def test_no_uprobe_events(machine: Machine, attempts: Attempts) -> None:
    """
    Without the kernel's list of event sources a perf uprobe is impossible; a link does without.
    """
    blind = replace(machine, uprobe_type=None, release="6.9.0")
    failed = {**attempts, Attempt.UPROBE: errno.ENODEV}

    check = _ability("uprobes", blind, failed)

    assert (Status.MISSING, "/sys/bus/event_source/devices/uprobe is not there", 6) == (
        check.status,
        check.found,
        check.exit_code,
    )
    assert Status.OK is _ability("uprobes", replace(machine, uprobe_type=None), attempts).status


def test_a_placed_uprobe_outweighs_the_attempt(machine: Machine, attempts: Attempts) -> None:
    """
    What the real probe did decides.
    """
    failed = {**attempts, Attempt.UPROBE: errno.EACCES}

    assert Status.OK is _ability("uprobes", machine, failed, placed=True).status
    assert Status.MISSING is _ability("uprobes", machine, failed).status


@pytest.mark.parametrize(
    ("seccomp", "number", "exit_code"),
    [(0, errno.ENOSYS, 6), (2, errno.ENOSYS, 5), (2, errno.EPERM, 5)],
)
def test_no_pidfd(
    machine: Machine, attempts: Attempts, seccomp: int, number: int, exit_code: int
) -> None:
    """
    Under a filter the filter is blamed, otherwise the kernel's age.
    """
    check = _ability(
        "pidfd", replace(machine, seccomp=seccomp), {**attempts, Attempt.PIDFD: number}
    )

    assert (Status.MISSING, exit_code) == (check.status, check.exit_code)
