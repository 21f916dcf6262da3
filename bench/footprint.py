"""Reads what a running process has used, CPU time and memory, and whether it can be ended."""

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "Memory",
    "expects_signal",
    "read_cpu_ns",
    "read_family_cpu_ns",
    "read_memory",
    "read_switches",
    "read_threads_cpu_ns",
]

_NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_BYTES_PER_KB = 1024
# Positions in /proc/PID/stat behind the command name: cutime and cstime.
_CHILD_TIMES = slice(13, 15)


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one process."""

    resident_bytes: int
    proportional_bytes: int
    """Pages that several processes share count for their part (PSS)."""
    private_bytes: int
    """What ending the process would free."""


def read_family_cpu_ns(pid: int) -> int:
    """Return the CPU time of *pid* and of its children.

    That of those that have ended is told in steps of a clock tick.
    """
    total_ns = read_cpu_ns(pid) + _ended_children_cpu_ns(pid)
    for child in _children(pid):
        with contextlib.suppress(OSError):
            total_ns += read_cpu_ns(child)
    return total_ns


def read_cpu_ns(pid: int) -> int:
    """Return the CPU time of all threads of *pid*, its children excluded."""
    # The kernel's number of the CPU clock of another process, as clock_getcpuclockid makes it.
    return time.clock_gettime_ns(~pid << 3 | 2)


def read_threads_cpu_ns(pid: int) -> Mapping[str, int]:
    """Return the CPU time of the threads that run now in *pid* and in its children, by name."""
    found: Counter[str] = Counter()
    for each in (pid, *_children(pid)):
        for thread in Path(f"/proc/{each}/task").glob("*"):
            # It may have ended.
            with contextlib.suppress(OSError):
                name = (thread / "comm").read_text().rstrip("\n")
                found[name] += int((thread / "schedstat").read_text().split()[0])
    return found


def read_switches(pid: int) -> int:
    """Return how often the threads that run now in *pid* have been taken off a CPU.

    By themselves, because they sleep, or for another one.
    """
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        # It may have ended.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            lines = (thread / "status").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if "ctxt_switches:" in line)
    return total


def read_memory(pid: int) -> Memory:
    """Return the memory of *pid* now."""
    mapped = _read_sizes(Path(f"/proc/{pid}/smaps_rollup"))
    return Memory(
        # Since Linux kernel commit f1a7941243c1 ("mm: convert mm's rss stats into percpu_counter")
        # (in v6.2), VmRSS lags behind.
        resident_bytes=mapped["Rss"],
        proportional_bytes=mapped["Pss"],
        private_bytes=mapped["Private_Clean"] + mapped["Private_Dirty"],
    )


def _ended_children_cpu_ns(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[_CHILD_TIMES])) * _NS_PER_TICK


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        # It may have ended.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (thread / "children").read_text().split())
    return found


def expects_signal(pid: int, number: signal.Signals) -> bool:
    """Return whether *pid* has a handler for the signal, or blocks it to wait for it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    masks = dict(line.split(":\t") for line in lines if line.startswith(("SigCgt", "SigBlk")))
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks.values())


def _read_sizes(path: Path) -> dict[str, int]:
    sizes = {}
    for line in path.read_text().splitlines():
        name, _, rest = line.partition(":")
        match rest.split():
            case [count, "kB"]:
                sizes[name] = int(count) * _BYTES_PER_KB
    return sizes
