"""How the clock that the probes read differs from the agent's own.

The programs read the kernel's CLOCK_MONOTONIC, and user space compares its own with what they have
written. A time namespace shifts the agent's by an amount that never changes in a running process,
so the programs are told to add it.
"""

import re
import time
from pathlib import Path

from gilscope.errors import KernelOrBccMissing
from gilscope.system import syscall

__all__ = ["clock_offset_ns", "clock_parameters", "require_own_clock"]

_INITIAL_TIME_NAMESPACE = 0xEFFFFFFA
"""The inode of the first time namespace of a host: PROC_TIME_INIT_INO of the kernel."""

_SELF = Path("/proc/self")
_OFFSET = re.compile(r"^monotonic\s+(-?\d+)\s+(\d+)$", re.MULTILINE)
_S = 1_000_000_000


def clock_parameters() -> dict[str, int]:
    """Return what lets programs read the agent's clock; raises KernelOrBccMissing."""
    require_own_clock()
    return {"CLOCK_OFFSET_NS": clock_offset_ns()}


def clock_offset_ns(process: Path = _SELF) -> int:
    """Return by how much the clock of this process is ahead of the kernel's.

    Raises KernelOrBccMissing where that cannot be told.
    """
    try:
        own = (process / "ns" / "time").stat().st_ino
        children = (process / "ns" / "time_for_children").stat().st_ino
    except FileNotFoundError:
        return 0  # a kernel without time namespaces, which came with Linux 5.6
    if own == _INITIAL_TIME_NAMESPACE:
        return 0
    # The file is about the namespace that children will be in, nearly always the same.
    found = _OFFSET.search((process / "timens_offsets").read_text()) if own == children else None
    if found is None:
        raise KernelOrBccMissing(
            "gilscope is in a time namespace, and by how much that shifts its clock cannot be told",
            remedy="Start it in the time namespace of the host: without unshare --time.",
        )
    return int(found[1]) * _S + int(found[2])


def require_own_clock() -> None:
    """Return where this process is told the time by the kernel; else raise KernelOrBccMissing."""
    before_ns = time.monotonic_ns()
    kernel_ns = syscall.monotonic_ns()
    if not before_ns <= kernel_ns <= time.monotonic_ns():
        raise KernelOrBccMissing(
            "something in this process changes what its clock says, as libfaketime does: "
            f"CLOCK_MONOTONIC is {kernel_ns} ns by the kernel and {before_ns} ns by the C library",
            remedy="Run gilscope without LD_PRELOAD: times of the probes are the kernel's.",
        )
