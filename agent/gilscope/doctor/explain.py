"""Says why a command was refused what it needs, by what doctor finds out about that."""

import os
from collections.abc import Sequence

from gilscope.doctor.access import judge_standing, read_standing, why_denied
from gilscope.doctor.kernel import judge_abilities
from gilscope.doctor.machine import Capability, Machine, read_machine
from gilscope.doctor.permissions import judge_environment
from gilscope.doctor.syscall_trials import make_attempts
from gilscope.errors import GilscopeError, KernelOrBccMissing, NoProcesses, NotPermitted, NotPython
from gilscope.model.diagnosis import first_failure
from gilscope.process import procfs

__all__ = ["explained", "explained_denial", "require_processes"]


def explained(error: GilscopeError, pids: Sequence[int]) -> GilscopeError:
    """Return *error* with its true cause and what fixes that, itself where they are not known.

    *pids* are the processes that the user has named. A child process tries what was refused, so
    that one may take some milliseconds; nothing is compiled.
    """
    if not isinstance(error, (NotPermitted, NotPython)):
        return error
    try:
        machine = read_machine()
    except KernelOrBccMissing:
        return error
    if isinstance(error, NotPython):
        return _explained_absence(error, pids, machine)
    return _explained_refusal(error, pids, machine)


def explained_denial(error: NotPermitted, pid: int) -> NotPermitted:
    """Return *error* with the reason why *pid* may not be inspected, itself for another reason.

    Nothing is tried, so a service may ask at any time.
    """
    try:
        return _explained_denial(error, pid, read_machine()) or error
    except (KernelOrBccMissing, OSError):
        return error


def require_processes(*, named: bool) -> None:
    """Return where there are, or may come to be, processes that can be inspected.

    *named*: the user has named them, so only those matter. Raises NoProcesses, NotPermitted or
    KernelOrBccMissing.
    """
    machine = read_machine()
    failure = first_failure(judge_environment(machine))
    if failure is not None and failure.exit_code == NoProcesses.exit_code:
        raise NoProcesses(
            "gilscope is alone in a pid namespace of its own: there is nothing to trace",
            remedy=failure.remedy,
        )
    if failure is not None:
        raise KernelOrBccMissing(failure.found, remedy=failure.remedy)
    if not named and not machine.has(Capability.CAP_SYS_PTRACE):
        _require_readable(machine)


def _explained_absence(error: NotPython, pids: Sequence[int], machine: Machine) -> GilscopeError:
    absent = next((pid for pid in pids if read_standing(pid) is None), None)
    if absent is None or machine.in_first_pid_namespace:
        return error
    failure = first_failure(judge_standing(absent, None, "", machine))
    return error if failure is None else NotPython(failure.found, remedy=failure.remedy)


def _explained_refusal(error: NotPermitted, pids: Sequence[int], machine: Machine) -> NotPermitted:
    for pid in pids:
        denial = _explained_denial(error, pid, machine)
        if denial is not None:
            return denial
    attempts = make_attempts(machine.uprobe_type, uses_links=machine.uses_links)
    failure = first_failure(judge_abilities(machine, attempts, can_place_uprobes=False))
    if failure is None:
        return error
    return NotPermitted(f"{error}: {failure.found}", remedy=failure.remedy)


def _explained_denial(error: NotPermitted, pid: int, machine: Machine) -> NotPermitted | None:
    standing = read_standing(pid)
    if standing is None or not standing.denial:
        return None
    reason, remedy = why_denied(standing, machine)
    return NotPermitted(f"{error}: {reason}", remedy=remedy)


def _require_readable(machine: Machine) -> None:
    refusal = None
    for pid in set(procfs.list_pids()) - {os.getpid()}:
        standing = read_standing(pid)
        if standing is None or standing.maps_files is False:
            continue
        if not standing.denial:
            return
        reason, remedy = why_denied(standing, machine)
        found = f"no other process may be inspected, process {pid} for one: {reason}"
        refusal = refusal or NotPermitted(found, remedy=remedy)
    if refusal is not None:
        raise refusal
