"""Names the true cause of a refused system call, from its errno and from checked facts."""

import errno
import os
from collections.abc import Mapping

from gilscope.doctor import remedies
from gilscope.doctor.machine import Capability, Machine
from gilscope.doctor.syscall_trials import KILLED, Attempt
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.values import dataclass

__all__ = ["Cause", "cause_of", "filtered_calls", "missing_capabilities", "was_refused"]

_FILTER = 2
_REFUSALS = (errno.EPERM, errno.EACCES)
_REACHED = errno.EINVAL
_MAPS_ARE_LOCKED_MEMORY_BEFORE = (5, 11)
_SPLIT_CAPABILITIES_SINCE = (5, 8)
_HIGHEST_PLAIN_PARANOIA = 2


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a call was refused, and what to do about it."""

    text: str
    remedy: str
    exit_code: int


def was_refused(number: int) -> bool:
    """Return whether the errno *number* speaks of permission, not of ability."""
    return number in _REFUSALS or number == KILLED


def missing_capabilities(
    machine: Machine, attempts: Mapping[Attempt, int], *, can_place_uprobes: bool = False
) -> tuple[str, ...]:
    """Return the capabilities that the agent lacks, by what the kernel refused.

    *can_place_uprobes*: it was done for real, however the attempt went.
    """
    if machine.has(Capability.CAP_SYS_ADMIN) or not machine.in_first_user_namespace:
        return _ptrace(machine)
    needed: list[Capability] = []
    if was_refused(attempts[Attempt.MAP]):
        needed.append(Capability.CAP_BPF)
    if was_refused(attempts[Attempt.PROGRAM]):
        needed.append(Capability.CAP_PERFMON)
    lacking = [capability for capability in needed if not machine.has(capability)]
    if (lacking and machine.version < _SPLIT_CAPABILITIES_SINCE) or (
        not can_place_uprobes and _perf_wants_admin(machine, attempts)
    ):
        return (Capability.CAP_SYS_ADMIN.name, *_ptrace(machine))
    return (*(capability.name for capability in lacking), *_ptrace(machine))


def filtered_calls(
    machine: Machine, attempts: Mapping[Attempt, int]
) -> tuple[tuple[str, ...], bool]:
    """Return the system calls that a seccomp filter keeps from the kernel.

    The second value is False where it cannot be told, because the kernel itself would refuse the
    agent in the same way.
    """
    if machine.seccomp != _FILTER:
        return (), True
    blocked = []
    if not machine.uses_links and attempts[Attempt.PERF_REACHED] != _REACHED:
        blocked.append("perf_event_open")
    bpf = attempts[Attempt.BPF_REACHED]
    if bpf == _REACHED:
        return tuple(blocked), True
    is_certain = bpf in (KILLED, errno.ENOSYS) or _may_use_bpf(machine)
    if is_certain:
        blocked.append("bpf")
    return tuple(sorted(blocked)), is_certain


def cause_of(attempt: Attempt, machine: Machine, attempts: Mapping[Attempt, int]) -> Cause:
    """Return why *attempt* failed; it must have failed."""
    number = attempts[attempt]
    call = "perf_event_open" if _is_perf(attempt, machine) else "bpf"
    if call in filtered_calls(machine, attempts)[0]:
        how = "kills whoever calls" if number == KILLED else f"answers {_name(number)} to"
        return Cause(
            f"a seccomp filter on the agent {how} {call}",
            remedies.allow_system_calls(machine),
            NotPermitted.exit_code,
        )
    if was_refused(number):
        return _refusal(attempt, machine, attempts)
    if number == errno.ENOSYS:
        return Cause(
            f"this kernel is built without {call}",
            "Run a kernel with CONFIG_BPF_SYSCALL and CONFIG_PERF_EVENTS",
            KernelOrBccMissing.exit_code,
        )
    return Cause(f"could not {attempt.value}: {_name(number)}", "", KernelOrBccMissing.exit_code)


def _refusal(attempt: Attempt, machine: Machine, attempts: Mapping[Attempt, int]) -> Cause:
    said = f"the kernel answers {_name(attempts[attempt])}"
    text, remedy = _reason(attempt, machine, attempts)
    return Cause(f"{said}: {text}", remedy, NotPermitted.exit_code)


def _reason(attempt: Attempt, machine: Machine, attempts: Mapping[Attempt, int]) -> tuple[str, str]:
    if not machine.in_first_user_namespace:
        return (
            "the agent is in a user namespace, whose capabilities do not count for BPF",
            remedies.leave_user_namespace(machine),
        )
    paranoia = machine.perf_event_paranoid or 0
    if attempts[Attempt.PERF_EVENT] and _is_perf(attempt, machine):
        if paranoia > _HIGHEST_PLAIN_PARANOIA and not machine.has(Capability.CAP_SYS_ADMIN):
            admin = Capability.CAP_SYS_ADMIN.name
            return (
                f"kernel.perf_event_paranoid is {paranoia}, which leaves perf events to {admin}",
                f"sysctl kernel.perf_event_paranoid=2, or {remedies.grant([admin], machine)}",
            )
    else:
        missing = missing_capabilities(machine, attempts)
        if set(missing) - {Capability.CAP_SYS_PTRACE.name}:
            return _lack(missing, machine)
    if _counts_locked_memory(machine) and attempt in (Attempt.MAP, Attempt.RING):
        limit = f"the limit of locked memory is {machine.memlock_bytes} bytes"
        return f"{limit}, and this kernel counts BPF maps", remedies.unlimited_memlock(machine)
    return _security(machine)


def _is_perf(attempt: Attempt, machine: Machine) -> bool:
    return attempt is Attempt.UPROBE and not machine.uses_links


def _perf_wants_admin(machine: Machine, attempts: Mapping[Attempt, int]) -> bool:
    return (
        not machine.uses_links
        and was_refused(attempts[Attempt.UPROBE])
        and machine.has(Capability.CAP_PERFMON)
        and not attempts[Attempt.PERF_EVENT]
    )


def _lack(missing: tuple[str, ...], machine: Machine) -> tuple[str, str]:
    needed = [name for name in missing if name != Capability.CAP_SYS_PTRACE.name]
    why = ""
    if machine.has(Capability.CAP_PERFMON) and needed == [Capability.CAP_SYS_ADMIN.name]:
        why = " (since CVE-2025-38466 kernels before 6.10 do not leave uprobes to CAP_PERFMON)"
    verb = "are" if len(needed) > 1 else "is"
    # The remedy names everything that is missing, so that it is done once.
    return f"{' and '.join(needed)} {verb} missing{why}", remedies.grant(missing, machine)


def _security(machine: Machine) -> tuple[str, str]:
    modules = machine.security_modules or "unknown, /sys/kernel/security is not mounted"
    lockdown = f", lockdown {machine.lockdown}" if machine.lockdown not in (None, "none") else ""
    others = "the seccomp filter or " if machine.seccomp == _FILTER else ""
    text = f"its capabilities would do, so {others}a security module of the kernel forbids it"
    remedy = "Look for the denial: dmesg | grep -iE 'denied|lockdown|audit'"
    return f"{text} ({modules}{lockdown})", remedy


def _ptrace(machine: Machine) -> tuple[str, ...]:
    has_it = machine.has(Capability.CAP_SYS_PTRACE)
    return () if has_it else (Capability.CAP_SYS_PTRACE.name,)


def _may_use_bpf(machine: Machine) -> bool:
    return machine.in_first_user_namespace and (
        machine.has(Capability.CAP_BPF) or machine.has(Capability.CAP_SYS_ADMIN)
    )


def _counts_locked_memory(machine: Machine) -> bool:
    return (
        machine.version < _MAPS_ARE_LOCKED_MEMORY_BEFORE
        and machine.memlock_bytes is not None
        and not machine.has(Capability.CAP_SYS_RESOURCE)
    )


def _name(number: int) -> str:
    if number == KILLED:
        return "SIGSYS"
    return f"{errno.errorcode.get(number, number)} ({os.strerror(number)})"
