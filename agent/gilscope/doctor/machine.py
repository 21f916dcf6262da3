"""Reads the facts of this machine, and of the agent's own place in it, that doctor judges."""

import os
import re
import resource
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from gilscope.bpf.features import kernel_features
from gilscope.errors import KernelOrBccMissing
from gilscope.process import procfs
from gilscope.values import dataclass

__all__ = ["Capability", "Machine", "Place", "read_machine", "version_of"]

# Inodes of a host's first namespaces: PROC_PID_INIT_INO and PROC_USER_INIT_INO of the kernel.
_FIRST_PID_NAMESPACE = 0xEFFFFFFC
_FIRST_USER_NAMESPACE = 0xEFFFFFFD

_INIT = 1
_TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
_UPROBE_TYPE = Path("/sys/bus/event_source/devices/uprobe/type")
_SYSCTL = Path("/proc/sys/kernel")
_SECURITY = Path("/sys/kernel/security")
_VERSION = re.compile(r"(\d+)\.(\d+)")


class Capability(Enum):
    """The capabilities that gilscope may need; the value is the kernel's bit."""

    CAP_DAC_OVERRIDE = 1
    CAP_DAC_READ_SEARCH = 2
    CAP_SYS_PTRACE = 19
    CAP_SYS_ADMIN = 21
    CAP_SYS_RESOURCE = 24
    CAP_PERFMON = 38
    CAP_BPF = 39


class Place(Enum):
    """Who started the agent: it decides how a missing permission is given."""

    HOST = "host"
    DOCKER = "docker"
    PODMAN = "podman"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts as they were read. None: the kernel does not say."""

    release: str
    architecture: str
    euid: int
    capabilities: int
    """The effective set of the agent, a bit for each."""
    seccomp: int
    """0 off, 1 strict, 2 filter."""
    in_first_user_namespace: bool
    in_first_pid_namespace: bool
    sees_other_processes: bool
    """Processes besides the agent, its ancestors and the kernel's threads."""
    is_init: bool
    """The agent is process 1 of its pid namespace: who is there later was started by it."""
    proc_is_own: bool
    """/proc shows the pid namespace that the agent is in."""
    uprobe_type: str | None
    perf_event_paranoid: int | None
    unprivileged_bpf_disabled: int | None
    ptrace_scope: int | None
    security_modules: str | None
    lockdown: str | None
    memlock_bytes: int | None
    """The soft limit; None: unlimited."""
    tracefs: str | None
    """Where it is mounted."""
    place: Place
    distributions: tuple[str, ...]
    """``ID`` and ``ID_LIKE`` of os-release."""

    def has(self, capability: Capability) -> bool:
        """Return whether *capability* is in the effective set."""
        return bool(self.capabilities >> capability.value & 1)

    @property
    def uses_links(self) -> bool:
        """Whether uprobes are BPF links here, and not perf events."""
        return kernel_features(self.release).uprobe_links

    @property
    def version(self) -> tuple[int, int]:
        """The kernel's version."""
        return version_of(self.release)


def version_of(release: str) -> tuple[int, int]:
    """Return the first two numbers of a kernel release, (0, 0) where it has none."""
    found = _VERSION.match(release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def read_machine() -> Machine:
    """Return the facts of this machine; raises KernelOrBccMissing where /proc is not mounted."""
    status = _own_status()
    uname = os.uname()
    memlock, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return Machine(
        release=uname.release,
        architecture=uname.machine,
        euid=os.geteuid(),
        capabilities=status.effective_capabilities,
        seccomp=status.seccomp,
        in_first_user_namespace=_inode("/proc/self/ns/user") == _FIRST_USER_NAMESPACE,
        in_first_pid_namespace=_inode("/proc/self/ns/pid") == _FIRST_PID_NAMESPACE,
        sees_other_processes=_sees_other_processes(),
        is_init=os.getpid() == _INIT,
        proc_is_own=_proc_is_own(),
        uprobe_type=_text(_UPROBE_TYPE),
        perf_event_paranoid=_number(_SYSCTL / "perf_event_paranoid"),
        unprivileged_bpf_disabled=_number(_SYSCTL / "unprivileged_bpf_disabled"),
        ptrace_scope=_number(_SYSCTL / "yama/ptrace_scope"),
        security_modules=_text(_SECURITY / "lsm"),
        lockdown=_chosen(_text(_SECURITY / "lockdown")),
        memlock_bytes=None if memlock == resource.RLIM_INFINITY else memlock,
        tracefs=next((str(path) for path in _TRACEFS if _is_tracefs(path)), None),
        place=_place(),
        distributions=_distributions(_text(Path("/etc/os-release")) or ""),
    )


def _own_status() -> procfs.ProcessStatus:
    # Not by pid: in another pid namespace than that of /proc this is still the agent.
    try:
        return procfs.parse_status(Path("/proc/self/status").read_text(errors="surrogateescape"))
    except OSError as error:
        raise KernelOrBccMissing(
            f"/proc/self cannot be read ({error.strerror}), and everything is learned from there",
            remedy="mount -t proc proc /proc",
        ) from error


def _proc_is_own() -> bool:
    try:
        return Path("/proc/self").readlink().name == str(os.getpid())
    except OSError:
        return False


def _sees_other_processes() -> bool:
    own = set(_ancestors(os.getpid()))
    return any(pid not in own and _maps_files(pid) for pid in procfs.list_pids())


def _ancestors(pid: int) -> Iterable[int]:
    while pid:
        yield pid
        try:
            pid = procfs.read_status(pid).parent
        except (OSError, KeyError):
            return


def _maps_files(pid: int) -> bool:
    # A kernel thread has no command line; a program almost always has.
    try:
        return bool(procfs.read_command_line(pid))
    except OSError:
        return False


def _is_tracefs(path: Path) -> bool:
    try:
        return (path / "events").exists()
    except PermissionError:
        # Mounted, and closed to everybody but root. The bare mount point is open.
        return True


def _place() -> Place:
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return Place.KUBERNETES
    # The file is hidden where a read-only container has a tmpfs on /run.
    kind = os.environ.get("container")  # noqa: SIM112 - as runtimes spell it
    if kind == "podman" or Path("/run/.containerenv").exists():
        return Place.PODMAN
    return Place.DOCKER if Path("/.dockerenv").exists() else Place.HOST


def _distributions(os_release: str) -> tuple[str, ...]:
    lines = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    return tuple(
        word for key in ("ID", "ID_LIKE") for word in lines.get(key, "").strip("\"'").split()
    )


def _chosen(text: str | None) -> str | None:
    # The text lists all levels and puts the one in force in brackets.
    found = re.search(r"\[(\w+)\]", text or "")
    return found[1] if found else None


def _inode(path: str) -> int | None:
    try:
        return Path(path).stat().st_ino
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text and text.lstrip("-").isdigit() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
