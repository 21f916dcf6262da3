"""Judges whether a process is there, where it stands, and whether its memory may be read."""

import contextlib
import pwd
from pathlib import Path

from gilscope.doctor import remedies
from gilscope.doctor.machine import Capability, Machine
from gilscope.errors import NotPermitted, NotPython
from gilscope.model.diagnosis import Check, Status
from gilscope.process import procfs
from gilscope.process.memory import ProcessMemory
from gilscope.values import dataclass

__all__ = ["Standing", "judge_reading", "judge_standing", "read_standing", "why_denied"]

_NAMESPACES = {"pid": "pid", "mnt": "mount", "user": "user"}
_ZOMBIE = "Z"
_NO_ATTACH = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """What /proc tells of a process to whoever asks."""

    tgid: int
    state: str
    threads: int
    uid: int
    seccomp: int
    maps_files: bool | None
    """None: not permitted to see."""
    pid_inside: int
    """Its pid in its own namespace."""
    other_namespaces: tuple[str, ...] | None
    """Kinds of namespace that it does not share with the agent; None: not permitted to see."""
    denial: str = ""
    """What the kernel answered to opening its memory; empty: it may be read."""


def read_standing(pid: int) -> Standing | None:
    """Return where process *pid* stands, None where there is none; raises OSError."""
    try:
        status = procfs.read_status(pid)
        threads = len(procfs.list_tids(pid))
        owner = Path(f"/proc/{pid}").stat().st_uid
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Standing(
        tgid=status.tgid,
        state=status.state,
        threads=threads,
        uid=owner,
        seccomp=status.seccomp,
        maps_files=_maps_files(pid),
        pid_inside=status.namespace_pids[-1],
        other_namespaces=_other_namespaces(pid),
        denial=_denial(pid),
    )


def judge_standing(
    pid: int, standing: Standing | None, name: str, machine: Machine
) -> tuple[Check, ...]:
    """Return whether *pid* is a process, and how it is set apart from the agent."""
    if standing is None:
        found, remedy = f"there is no process {pid}", NotPython.remedy
        if not machine.in_first_pid_namespace:
            found += " in the agent's pid namespace, where pids are others than on the host"
            remedy = f"{remedies.share_pid_namespace(machine)}; or: gilscope doctor --all"
        return (_absent(found, remedy),)
    if standing.tgid != pid:
        found = f"{pid} is a thread of process {standing.tgid}"
        return (_absent(found, f"gilscope doctor -p {standing.tgid}"),)
    if standing.state == _ZOMBIE:
        found = f"process {pid} has ended; its parent has not noticed yet"
        return (_absent(found, NotPython.remedy),)
    if standing.maps_files is False:
        return (_absent(f"process {pid} is a thread of the kernel", NotPython.remedy),)
    threads = f"{standing.threads} thread{'s' * (standing.threads != 1)}"
    found = f"{name}, {threads}, of user {_user(standing.uid)}"
    return (
        Check("process", Status.OK, found),
        _namespaces(standing),
        _seccomp(standing),
    )


def judge_reading(pid: int, standing: Standing, machine: Machine) -> Check:
    """Return whether the memory of the process may be read, and why not."""
    if not standing.denial:
        return Check("memory", Status.OK, f"/proc/{pid}/mem can be read")
    reason, remedy = why_denied(standing, machine)
    found = f"/proc/{pid} may not be inspected ({standing.denial}): {reason}"
    return Check("memory", Status.MISSING, found, remedy, NotPermitted.exit_code)


def why_denied(standing: Standing, machine: Machine) -> tuple[str, str]:
    """Return why the memory of a process may not be read, and what fixes it."""
    missing = _missing(standing, machine)
    if missing:
        whose = (
            "has capabilities that gilscope has not, or forbids it"
            if standing.uid == machine.euid
            else f"is of user {_user(standing.uid)}"
        )
        verb = "are" if len(missing) > 1 else "is"
        return (
            f"{' and '.join(missing)} {verb} missing, and the process {whose}",
            remedies.grant(missing, machine),
        )
    if not machine.in_first_user_namespace:
        return (
            "the agent is in a user namespace, whose capabilities do not count outside of it",
            remedies.leave_user_namespace(machine),
        )
    if (machine.ptrace_scope or 0) >= _NO_ATTACH:
        return (
            f"kernel.yama.ptrace_scope is {machine.ptrace_scope}, which forbids it to everybody",
            "Set kernel.yama.ptrace_scope to 2 or less in /etc/sysctl.d, then restart the machine",
        )
    modules = machine.security_modules or "unknown, /sys/kernel/security is not mounted"
    return (
        f"CAP_SYS_PTRACE is there, so a security module of the kernel forbids it ({modules})",
        "Look for the denial: dmesg | grep -iE 'denied|audit'",
    )


def _missing(standing: Standing, machine: Machine) -> list[str]:
    missing = []
    # The kernel opens /proc/PID/mem, a file of mode 0600, to its owner, and only then asks whether
    # the reader may trace.
    passes = (Capability.CAP_DAC_OVERRIDE, Capability.CAP_DAC_READ_SEARCH)
    if standing.uid != machine.euid and not any(map(machine.has, passes)):
        missing.append(Capability.CAP_DAC_READ_SEARCH.name)
    if not machine.has(Capability.CAP_SYS_PTRACE):
        missing.append(Capability.CAP_SYS_PTRACE.name)
    return missing


def _namespaces(standing: Standing) -> Check:
    others = standing.other_namespaces
    if others is None:
        return Check("namespaces", Status.UNKNOWN, "may not be read: see memory")
    if not others:
        return Check("namespaces", Status.OK, "the agent's own")
    found = f"own {', '.join(others)} namespace{'s' * (len(others) > 1)}"
    if "pid" in others:
        found += f" (it is pid {standing.pid_inside} in there)"
    return Check("namespaces", Status.OK, f"{found}, which is fine: a container")


def _seccomp(standing: Standing) -> Check:
    if not standing.seccomp:
        return Check("target_seccomp", Status.OK, "no filter on the process")
    found = "a filter on the process, which is fine: gilscope has it make no system calls"
    return Check("target_seccomp", Status.OK, found)


def _absent(found: str, remedy: str) -> Check:
    return Check("process", Status.MISSING, found, remedy, NotPython.exit_code)


def _maps_files(pid: int) -> bool | None:
    try:
        return bool(procfs.read_maps(pid))
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:
        return None


def _denial(pid: int) -> str:
    try:
        mappings = procfs.read_maps(pid)
        with ProcessMemory(pid) as memory:
            memory.read(mappings[0].start, 1)
    except PermissionError as error:
        return error.strerror or str(error)
    except (OSError, IndexError):
        # Gone by now, or without a program: whoever looks next says so.
        return ""
    return ""


def _other_namespaces(pid: int) -> tuple[str, ...] | None:
    try:
        return tuple(
            words
            for kind, words in _NAMESPACES.items()
            if _namespace(pid, kind) != _namespace("self", kind)
        )
    except OSError:
        return None


def _namespace(pid: int | str, kind: str) -> Path:
    return Path(f"/proc/{pid}/ns/{kind}").readlink()


def _user(uid: int) -> str:
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)
