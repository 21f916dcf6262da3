"""The commands and settings that fix what is missing, for the place where the agent runs."""

from collections.abc import Sequence

from gilscope.doctor.machine import Machine, Place

__all__ = [
    "allow_system_calls",
    "grant",
    "install_bcc",
    "install_headers",
    "leave_user_namespace",
    "newer_kernel",
    "share_pid_namespace",
    "unlimited_memlock",
]

_FEDORA_LIKE = ("fedora", "rhel", "centos")


def grant(capabilities: Sequence[str], machine: Machine) -> str:
    """Return how to give the agent *capabilities*, kernel names like ``CAP_BPF``."""
    short = [name.removeprefix("CAP_") for name in capabilities]
    options = " ".join(f"--cap-add {name}" for name in short)
    match machine.place:
        case Place.DOCKER | Place.PODMAN:
            return f"{machine.place.value} run {options} ..."
        case Place.KUBERNETES:
            return f"securityContext: {{capabilities: {{add: [{', '.join(short)}]}}}}"
        case Place.HOST:
            if machine.euid:
                return (
                    "sudo gilscope ...; in a systemd unit: "
                    f"AmbientCapabilities={' '.join(capabilities)}"
                )
            return (
                "Whoever started this dropped it; in a systemd unit: "
                f"CapabilityBoundingSet={' '.join(capabilities)}; in a container: {options}"
            )


def allow_system_calls(machine: Machine) -> str:
    """Return how to start the agent without a seccomp filter that forbids its system calls."""
    ways = {
        Place.DOCKER: "docker run --security-opt seccomp=unconfined ...",
        Place.PODMAN: "podman run --security-opt seccomp=unconfined ...",
        Place.KUBERNETES: "securityContext: {seccompProfile: {type: Unconfined}}",
    }
    calls = ["bpf"] if machine.uses_links else ["bpf", "perf_event_open"]
    narrower = f"or a profile that also allows {' and '.join(calls)}: deploy/seccomp/gilscope.json"
    if machine.place in ways:
        return f"{ways[machine.place]}; {narrower}"
    return (
        f"systemd: SystemCallFilter={' '.join(calls)}; "
        "docker, podman: --security-opt seccomp=unconfined; "
        f"Kubernetes: {ways[Place.KUBERNETES]}; {narrower}"
    )


def share_pid_namespace(machine: Machine) -> str:
    """Return how to let the agent see the processes of others."""
    if machine.place is Place.KUBERNETES:
        return "sidecar: shareProcessNamespace: true; DaemonSet: hostPID: true"
    run = "docker run" if machine.place is not Place.PODMAN else "podman run"
    one = f"{run} --pid container:TARGET ... (one container) or {run} --pid host ... (all)"
    if machine.place is Place.HOST:
        return f"{one}; Kubernetes: shareProcessNamespace: true or hostPID: true"
    return one


def leave_user_namespace(machine: Machine) -> str:
    """Return how to start the agent with the host's own root instead of a mapped one."""
    match machine.place:
        case Place.PODMAN:
            return "sudo podman run ... (rootful, without --userns)"
        case Place.DOCKER:
            return "docker run --userns host ... (and not with rootless Docker)"
        case Place.KUBERNETES:
            return "In the pod's spec: hostUsers: true"
        case Place.HOST:
            return "Start it outside of the user namespace: sudo gilscope ..."


def unlimited_memlock(machine: Machine) -> str:
    """Return how to lift the limit that old kernels count BPF maps against."""
    if machine.place is Place.HOST:
        return "ulimit -l unlimited; in a systemd unit: LimitMEMLOCK=infinity"
    return "docker run --ulimit memlock=-1 ..., or grant CAP_SYS_RESOURCE"


def install_bcc(distributions: Sequence[str]) -> str:
    """Return the command that installs BCC with its Python module."""
    if "arch" in distributions:
        return "pacman -S python-bcc"
    if any(name in distributions for name in _FEDORA_LIKE):
        return "dnf install python3-bcc"
    return "apt install python3-bpfcc"


def install_headers(distributions: Sequence[str]) -> str:
    """Return the command that installs kernel headers, and what to do where there are none."""
    if "arch" in distributions:
        command = "pacman -S linux-headers"
    elif any(name in distributions for name in _FEDORA_LIKE):
        command = "dnf install kernel-devel"
    else:
        command = "apt install linux-headers-$(uname -r)"
    return f"{command}, or name one complete tree of any version in BCC_KERNEL_SOURCE"


def newer_kernel(feature: str, version: str) -> str:
    """Return what to do about a kernel that lacks *feature*."""
    return f"Run a kernel from {version} on, which brought {feature}"
