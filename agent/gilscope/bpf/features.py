"""What the running kernel allows, and what is asked of it for every probe."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from gilscope.bpf.clock import clock_parameters
from gilscope.process.procfs import in_initial_pid_namespace
from gilscope.values import dataclass

__all__ = ["TRACEPOINTS", "Features", "kernel_features", "namespace_parameters", "program_kinds"]

_BPF_F_NO_PREALLOC = 1

TRACEPOINTS = {
    "on_thread_exit": "sched_process_exit",
    "on_exec": "sched_process_exec",
    "on_fork": "task_newtask",
}
"""By the program that every probe has for each: ends of threads and of programs, and children."""


@dataclass(frozen=True, slots=True)
class Features:
    """What this kernel has beyond the least that gilscope needs."""

    uprobe_links: bool
    """All probes of a program in one link, which carries a number to the program."""
    tables_may_grow: bool = True
    """Hash tables take memory as they fill."""

    @property
    def table_flags(self) -> int:
        """What hash tables are made with."""
        return _BPF_F_NO_PREALLOC if self.tables_may_grow else 0


def kernel_features(release: str | None = None) -> Features:
    """Return the features of the kernel *release*, by default of the one that runs."""
    # Links came with Linux 6.6, but until commit 46ba0e49b642 ("bpf: fix multi-uprobe PID
    # filtering logic") (in v6.10) one with a pid saw the process' main thread only. Nothing but
    # the release tells that apart.
    # Tables of tracing programs that grow made Linux warn from 5.7 on, until commit 34dd3bad1a6f
    # ("bpf: Relax the requirement to use preallocated hash maps in tracing progs.") (in v6.1).
    found = re.match(r"(\d+)\.(\d+)", release or os.uname().release)
    version = (0, 0) if found is None else (int(found[1]), int(found[2]))
    return Features(uprobe_links=version >= (6, 10), tables_may_grow=version >= (6, 1))


def namespace_parameters() -> dict[str, int]:
    """Return what lets programs see processes, and the time, as the agent does.

    Raises KernelOrBccMissing where the agent's clock has nothing to do with the kernel's.
    """
    clock = clock_parameters()
    if in_initial_pid_namespace():
        return {**clock, "PID_NAMESPACE_INODE": 0, "PID_NAMESPACE_DEVICE": 0}
    # The kernel's ids are the host's; inside a pid namespace, ask for the agent's own view.
    namespace = Path("/proc/self/ns/pid").stat()
    return {
        **clock,
        "PID_NAMESPACE_INODE": namespace.st_ino,
        "PID_NAMESPACE_DEVICE": namespace.st_dev,
    }


def program_kinds(uprobes: Iterable[str], features: Features) -> dict[str, str]:
    """Return as what each program is loaded: *uprobes*, and those of `TRACEPOINTS`, by name."""
    return {
        **dict.fromkeys(uprobes, "uprobe_multi" if features.uprobe_links else "uprobe"),
        **dict.fromkeys(TRACEPOINTS, "raw_tracepoint"),
    }
