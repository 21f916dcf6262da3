"""Reads what a running process has used: CPU time and memory."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Memory", "read_cpu_ns", "read_ended_children_cpu_ns", "read_memory"]

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


def read_cpu_ns(pid: int) -> int:
    """Return the CPU time of all threads of *pid*, its children excluded."""
    # The kernel's number of the CPU clock of another process, as clock_getcpuclockid makes it.
    return time.clock_gettime_ns(~pid << 3 | 2)


def read_ended_children_cpu_ns(pid: int) -> int:
    """Return the CPU time of the children of *pid* that have ended, in steps of a clock tick."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[_CHILD_TIMES])) * _NS_PER_TICK


def read_memory(pid: int) -> Memory:
    """Return the memory of *pid* now."""
    mapped = _read_sizes(Path(f"/proc/{pid}/smaps_rollup"))
    return Memory(
        resident_bytes=_read_sizes(Path(f"/proc/{pid}/status"))["VmRSS"],
        proportional_bytes=mapped["Pss"],
        private_bytes=mapped["Private_Clean"] + mapped["Private_Dirty"],
    )


def _read_sizes(path: Path) -> dict[str, int]:
    sizes = {}
    for line in path.read_text().splitlines():
        name, _, rest = line.partition(":")
        match rest.split():
            case [count, "kB"]:
                sizes[name] = int(count) * _BYTES_PER_KB
    return sizes
