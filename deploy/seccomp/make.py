"""Makes gilscope.json: a container runtime's own seccomp profile, and what gilscope needs more.

    python3 deploy/seccomp/make.py /usr/share/containers/seccomp.json >deploy/seccomp/gilscope.json

Runtimes write their profiles with conditions on capabilities and processors, which containerd, for
one, does not read in the profile of a pod. So the conditions are resolved here, for the processor
and the capabilities of gilscope, and what is left means the same to all of them.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["CALLS", "resolved"]

CALLS = ("bpf", "perf_event_open")
"""What runtimes leave to CAP_SYS_ADMIN."""
_NEEDLESS = {
    *("add_key", "keyctl", "request_key"),
    *("fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount"),
    *("open_tree", "pivot_root", "umount", "umount2"),
    *("setns", "unshare"),
    *("reboot", "syslog"),
}
"""What Podman allows, where the kernel does, for containers that run containers, and others not."""
_CAPABILITIES = {"CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"}
_ARCHITECTURE, _PROCESSOR = "SCMP_ARCH_X86_64", "amd64"


def resolved(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return *profile* without conditions, as it is for gilscope, with `CALLS` allowed."""
    (architecture,) = [
        entry for entry in profile["archMap"] if entry["architecture"] == _ARCHITECTURE
    ]
    return {
        "defaultAction": profile["defaultAction"],
        "defaultErrnoRet": profile["defaultErrnoRet"],
        "architectures": [_ARCHITECTURE, *architecture["subArchitectures"]],
        "syscalls": [
            {"names": list(CALLS), "action": "SCMP_ACT_ALLOW"},
            *_rules(profile["syscalls"]),
        ],
    }


def _rules(rules: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for rule in rules:
        names = sorted(set(rule["names"]) - {*CALLS, *_NEEDLESS})
        if not names or not _holds(rule["includes"], rule["excludes"]):
            continue
        kept = {"names": names, "action": rule["action"]}
        yield kept | {key: rule[key] for key in ("args", "errnoRet") if rule.get(key)}


def _holds(includes: Mapping[str, list[str]], excludes: Mapping[str, list[str]]) -> bool:
    return (
        _PROCESSOR in includes.get("arches", [_PROCESSOR])
        and _PROCESSOR not in excludes.get("arches", [])
        and set(includes.get("caps", [])) <= _CAPABILITIES
        and _CAPABILITIES.isdisjoint(excludes.get("caps", []))
    )


if __name__ == "__main__":
    print(json.dumps(resolved(json.loads(Path(sys.argv[1]).read_text())), indent=2))
