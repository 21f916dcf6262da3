"""Judges what the agent is allowed: capabilities, filters, namespaces and the kernel's switches."""

import os
from collections.abc import Mapping
from pathlib import Path

from gilscope.doctor import remedies
from gilscope.doctor.causes import filtered_calls, missing_capabilities
from gilscope.doctor.machine import Capability, Machine
from gilscope.doctor.syscall_trials import Attempt
from gilscope.errors import KernelOrBccMissing, NoProcesses, NotPermitted
from gilscope.model.diagnosis import Check, Status
from gilscope.system.cache_dir import open_trusted

__all__ = [
    "judge_environment",
    "judge_program_cache",
    "judge_rights",
    "judge_site_cache",
    "judge_switches",
]

_OTHER_CACHE = "XDG_CACHE_HOME=/var/cache gilscope ..."

_COUNTING = (
    Capability.CAP_BPF,
    Capability.CAP_PERFMON,
    Capability.CAP_SYS_ADMIN,
    Capability.CAP_SYS_PTRACE,
)
_NO_ATTACH = 3
_FILTER = 2
_MAPS_ARE_LOCKED_MEMORY_BEFORE = (5, 11)


def judge_rights(
    machine: Machine,
    attempts: Mapping[Attempt, int],
    *,
    can_place_uprobes: bool,
    target_is_readable: bool,
) -> tuple[Check, ...]:
    """Return what the agent may and may not do, and why.

    *target_is_readable*: the process that doctor was asked about can be inspected, so that
    CAP_SYS_PTRACE is not needed for it.
    """
    return (
        _capabilities(
            machine,
            missing_capabilities(machine, attempts, can_place_uprobes=can_place_uprobes),
            target_is_readable=target_is_readable,
        ),
        _user_namespace(machine),
        _seccomp(machine, attempts),
    )


def _capabilities(machine: Machine, missing: tuple[str, ...], *, target_is_readable: bool) -> Check:
    name = "capabilities"
    if not missing:
        used = [capability.name for capability in _COUNTING if machine.has(capability)]
        return Check(name, Status.OK, f"enough: {', '.join(used)}")
    remedy = remedies.grant(missing, machine)
    if missing == (Capability.CAP_SYS_PTRACE.name,):
        limit = "only processes of this user with no more capabilities can be inspected"
        if target_is_readable:
            found = f"CAP_SYS_PTRACE is missing: {limit}, as the one asked about can"
            return Check(name, Status.WARNING, found, remedy)
        found = f"CAP_SYS_PTRACE is missing: {limit}"
    else:
        found = f"{_and(missing)} {'are' if len(missing) > 1 else 'is'} missing"
    return Check(name, Status.MISSING, found, remedy, NotPermitted.exit_code)


def _user_namespace(machine: Machine) -> Check:
    if machine.in_first_user_namespace:
        return Check("user_namespace", Status.OK, "the host's: capabilities count")
    return Check(
        "user_namespace",
        Status.MISSING,
        "one of its own (a rootless container?): its root and its capabilities count for nothing "
        "with BPF, uprobes and the processes of others",
        remedies.leave_user_namespace(machine),
        NotPermitted.exit_code,
    )


def _seccomp(machine: Machine, attempts: Mapping[Attempt, int]) -> Check:
    if machine.seccomp != _FILTER:
        return Check("seccomp", Status.OK, "no filter on the agent")
    blocked, is_certain = filtered_calls(machine, attempts)
    if blocked:
        return Check(
            "seccomp",
            Status.MISSING,
            f"a filter on the agent forbids {_and(blocked)}, whatever its capabilities",
            remedies.allow_system_calls(machine),
            NotPermitted.exit_code,
        )
    if is_certain:
        calls = "bpf" if machine.uses_links else "bpf and perf_event_open"
        found = f"a filter on the agent lets {calls} pass"
        return Check("seccomp", Status.OK, found)
    return Check(
        "seccomp",
        Status.UNKNOWN,
        "there is a filter on the agent; whether it forbids bpf shows when the capability is there",
    )


def judge_switches(machine: Machine, *, target_is_readable: bool) -> tuple[Check, ...]:
    """Return what the kernel's own switches and limits mean for the agent."""
    return (
        Check(
            "perf_event_paranoid",
            Status.OK,
            f"{_or_none(machine.perf_event_paranoid)}; "
            + (
                "does not concern uprobes on this kernel"
                if machine.uses_links
                else "whether uprobes are allowed was tried above"
            ),
        ),
        Check(
            "unprivileged_bpf",
            Status.OK,
            f"disabled: {_or_none(machine.unprivileged_bpf_disabled)}; does not concern CAP_BPF",
        ),
        _yama(machine, target_is_readable=target_is_readable),
        _memlock(machine),
        Check(
            "tracefs",
            Status.OK,
            f"{f'mounted at {machine.tracefs}' if machine.tracefs else 'not mounted'}; "
            "gilscope does not use it",
        ),
    )


def _yama(machine: Machine, *, target_is_readable: bool) -> Check:
    scope, name = machine.ptrace_scope, "ptrace_scope"
    if scope and target_is_readable:
        return Check(name, Status.OK, f"{scope}; the process asked about can be read all the same")
    if not scope:
        found = "Yama is not in this kernel" if scope is None else "0: Yama forbids nothing"
        return Check(name, Status.OK, found)
    if scope >= _NO_ATTACH:
        return Check(
            name,
            Status.MISSING,
            f"{scope}: Yama lets nobody read the memory of another process",
            "Set kernel.yama.ptrace_scope to 2 or less in /etc/sysctl.d, then restart the machine",
            NotPermitted.exit_code,
        )
    if machine.has(Capability.CAP_SYS_PTRACE):
        return Check(name, Status.OK, f"{scope}; does not concern who has CAP_SYS_PTRACE")
    return Check(
        name,
        Status.MISSING,
        f"{scope}: Yama lets only CAP_SYS_PTRACE read the memory of other processes",
        remedies.grant([Capability.CAP_SYS_PTRACE.name], machine),
        NotPermitted.exit_code,
    )


def _memlock(machine: Machine) -> Check:
    if machine.version >= _MAPS_ARE_LOCKED_MEMORY_BEFORE:
        found = "does not count BPF maps on this kernel (since Linux 5.11)"
    elif machine.memlock_bytes is None:
        found = "unlimited"
    elif machine.has(Capability.CAP_SYS_RESOURCE):
        found = f"{machine.memlock_bytes} bytes, which CAP_SYS_RESOURCE may raise"
    else:
        return Check(
            "memlock",
            Status.WARNING,
            f"{machine.memlock_bytes} bytes, and before Linux 5.11 BPF maps count",
            remedies.unlimited_memlock(machine),
        )
    return Check("memlock", Status.OK, found)


def judge_environment(machine: Machine) -> tuple[Check, ...]:
    """Return which processes the agent can see."""
    if not machine.proc_is_own:
        return (
            Check(
                "pid_namespace",
                Status.MISSING,
                "/proc shows another pid namespace than the one that the agent is in",
                "mount -t proc proc /proc; with unshare: --mount-proc",
                KernelOrBccMissing.exit_code,
            ),
        )
    if machine.in_first_pid_namespace:
        return (Check("pid_namespace", Status.OK, "the host's: all processes are seen"),)
    if machine.sees_other_processes:
        found = "one of its own: processes outside of it are not seen; pids are as seen in here"
        return (Check("pid_namespace", Status.OK, found),)
    found = "one of its own, with no other process in it: there is nothing to trace"
    remedy = remedies.share_pid_namespace(machine)
    if machine.is_init:
        return (Check("pid_namespace", Status.MISSING, found, remedy, NoProcesses.exit_code),)
    # Whoever has started the agent may start, or become, what it is to trace.
    return (Check("pid_namespace", Status.WARNING, found, remedy),)


def judge_site_cache(folder: Path | None) -> Check:
    """Return whether *folder*, None for no home directory, can be written to."""
    name, remedy = "site_cache", _OTHER_CACHE
    if folder is None:
        return Check(
            name, Status.MISSING, "this user has no home directory to keep a cache in", remedy, 1
        )
    if _can_be_written_to(folder):
        return Check(name, Status.OK, f"{folder} can be written to")
    return Check(
        name,
        Status.WARNING,
        f"{folder} cannot be written to: the GIL's code is searched for again at every start",
        remedy,
    )


def judge_program_cache(folder: Path | None, *, is_needed: bool = True) -> Check:
    """Return whether compiled programs are remembered in *folder*, None for no home directory.

    Not *is_needed*: they came compiled.
    """
    name = "program_cache"
    if not is_needed:
        return Check(name, Status.OK, "not needed: the probes came compiled with gilscope")
    if folder is None:
        return Check(name, Status.UNKNOWN, "see site cache")
    reason = _distrusted(folder)
    if not reason and _can_be_written_to(folder):
        return Check(name, Status.OK, f"compiled programs are remembered in {folder}")
    reason = reason or f"{folder} cannot be written to"
    return Check(
        name,
        Status.WARNING,
        f"the probes are compiled at every start, and not remembered: {reason}",
        _OTHER_CACHE,
    )


def _distrusted(folder: Path) -> str:
    try:
        os.close(open_trusted(folder))
    except FileNotFoundError:
        # All above is as it should be, and it will be made there.
        return ""
    except OSError as error:
        return f"{error.filename} {error.strerror}"
    return ""


def _can_be_written_to(folder: Path) -> bool:
    # Not Path.exists: it raises where a folder above is closed, and os.access just says no.
    existing = next(
        (path for path in (folder, *folder.parents) if os.access(path, os.F_OK)), folder
    )
    return os.access(existing, os.W_OK | os.X_OK) and existing.is_dir()


def _or_none(value: int | None) -> str:
    return "not in this kernel" if value is None else str(value)


def _and(names: tuple[str, ...]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
