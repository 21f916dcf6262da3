"""Judges the kernel: its version, and what it did when it was asked for each thing in turn."""

import errno
from collections.abc import Mapping

from gilscope.arch.registry import all_architectures, architecture_named
from gilscope.doctor.causes import cause_of, was_refused
from gilscope.doctor.machine import Machine
from gilscope.doctor.remedies import allow_system_calls, newer_kernel
from gilscope.doctor.syscall_trials import Attempt
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.model.diagnosis import Check, Status

__all__ = ["judge_abilities", "judge_architecture", "judge_release"]

_OLDEST = (5, 8)
"""Ring buffers, by which the probes wake the agent. Whatever else is needed is older."""

_CAME_WITH = {
    Attempt.RING: ("BPF ring buffers", "5.8"),
    Attempt.PROGRAM: ("bpf_probe_read_user", "5.5"),
    Attempt.NAMESPACE_PROGRAM: ("bpf_get_ns_current_pid_tgid", "5.7"),
    Attempt.PIDFD: ("pidfd_open", "5.3"),
}


def judge_release(machine: Machine) -> Check:
    """Return whether the kernel's version promises what gilscope needs."""
    found = f"Linux {machine.release}; {_dotted(_OLDEST)} is needed (for BPF ring buffers)"
    if machine.version < _OLDEST:
        # Distributions bring features to older kernels: what counts is the attempt.
        return Check(
            "kernel",
            Status.WARNING,
            f"{found}, unless the distribution brought that to it: the checks below tell",
            newer_kernel("what gilscope needs", _dotted(_OLDEST)),
        )
    return Check("kernel", Status.OK, found)


def judge_architecture(machine: Machine) -> Check:
    """Return whether gilscope knows the instructions of this processor."""
    architecture = architecture_named(machine.architecture)
    if architecture is not None and architecture.is_traced:
        return Check("architecture", Status.OK, machine.architecture)
    if architecture is not None:
        return Check(
            "architecture",
            Status.WARNING,
            f"{machine.architecture}: its code is known from files, and nothing was traced on it",
            "Compare what it reports with what you know of the program",
        )
    known = " and ".join(each.name for each in all_architectures())
    return Check(
        "architecture",
        Status.MISSING,
        f"{machine.architecture}; gilscope knows the code and the system calls of {known} only",
        f"Run it on a machine with {known}",
        KernelOrBccMissing.exit_code,
    )


def judge_abilities(
    machine: Machine, attempts: Mapping[Attempt, int], *, can_place_uprobes: bool
) -> tuple[Check, ...]:
    """Return what the kernel did when it was asked, a check for each kind of thing.

    *can_place_uprobes*: it was done for real, however the attempt went.
    """
    needed = [Attempt.MAP, Attempt.RING, Attempt.PROGRAM]
    if not machine.in_first_pid_namespace:
        needed.append(Attempt.NAMESPACE_PROGRAM)
    return (
        _bpf(needed, machine, attempts),
        _raw_tracepoints(machine, attempts),
        _uprobes(machine, attempts, can_place_uprobes=can_place_uprobes),
        _pidfd(machine, attempts),
    )


def _bpf(needed: list[Attempt], machine: Machine, attempts: Mapping[Attempt, int]) -> Check:
    failed = next((attempt for attempt in needed if attempts[attempt]), None)
    if failed is None:
        return Check("bpf", Status.OK, "maps are made, a ring buffer too, and a program was loaded")
    if attempts[failed] == errno.EINVAL:
        return _too_old("bpf", failed)
    return _failure("bpf", failed, machine, attempts)


def _raw_tracepoints(machine: Machine, attempts: Mapping[Attempt, int]) -> Check:
    attempt = Attempt.RAW_TRACEPOINT
    if not attempts[attempt]:
        return Check("raw_tracepoints", Status.OK, "sched_process_exit takes a program")
    return _failure("raw_tracepoints", attempt, machine, attempts)


def _uprobes(
    machine: Machine, attempts: Mapping[Attempt, int], *, can_place_uprobes: bool
) -> Check:
    if can_place_uprobes or not attempts[Attempt.UPROBE]:
        way = "a BPF link" if machine.uses_links else "a perf event"
        return Check("uprobes", Status.OK, f"one was placed in gilscope itself, by {way}")
    if machine.uprobe_type is None and not machine.uses_links:
        return Check(
            "uprobes",
            Status.MISSING,
            "/sys/bus/event_source/devices/uprobe is not there",
            "Mount /sys (mount -t sysfs sysfs /sys), or run a kernel with CONFIG_UPROBE_EVENTS",
            KernelOrBccMissing.exit_code,
        )
    return _failure("uprobes", Attempt.UPROBE, machine, attempts)


def _pidfd(machine: Machine, attempts: Mapping[Attempt, int]) -> Check:
    number = attempts[Attempt.PIDFD]
    if not number:
        return Check("pidfd", Status.OK, "pidfd_open works: the end of a process is noticed")
    if machine.seccomp and (was_refused(number) or number == errno.ENOSYS):
        return Check(
            "pidfd",
            Status.MISSING,
            "a seccomp filter on the agent forbids pidfd_open",
            allow_system_calls(machine),
            NotPermitted.exit_code,
        )
    return _too_old("pidfd", Attempt.PIDFD)


def _failure(
    name: str, attempt: Attempt, machine: Machine, attempts: Mapping[Attempt, int]
) -> Check:
    cause = cause_of(attempt, machine, attempts)
    return Check(name, Status.MISSING, cause.text, cause.remedy, cause.exit_code)


def _too_old(name: str, attempt: Attempt) -> Check:
    feature, version = _CAME_WITH.get(attempt, (attempt.value, _dotted(_OLDEST)))
    return Check(
        name,
        Status.MISSING,
        f"this kernel does not know {feature}, which came with Linux {version}",
        newer_kernel(feature, version),
        KernelOrBccMissing.exit_code,
    )


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
