"""Decides whether the machine is free enough for a number, and names sets of its CPUs."""

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["Gate", "cpu_sets", "pinned", "verdict", "verdict_on_stolen"]

_SPIN_NS = 200_000_000
_LEAST_SHARE = 0.9
"""A virtual machine on a host with others seldom has more for long: what each cell had is kept."""
_MOST_PRESSURE = 0.05
_MOST_STOLEN = 0.05
_PRESSURE = Path("/proc/pressure/cpu")
_PAIR = 2
_FRESH_S = 0.5
"""What was found at the end of a cell still holds at the beginning of the next."""


def cpu_sets(cpus: Iterable[int]) -> Mapping[str, tuple[int, ...]]:
    """Return the sets that cells name: ``one``, ``two`` and ``all``, those that differ.

    On one CPU there is no ``two``; on two, ``two`` is all.
    """
    usable = tuple(sorted(cpus))
    sets = {"one": usable[:1]}
    if len(usable) >= _PAIR:
        sets["two"] = usable[:_PAIR]
    if len(usable) > _PAIR:
        sets["all"] = usable
    return sets


def pinned(command: Sequence[str], cpus: Sequence[int]) -> list[str]:
    """Return what runs *command* on *cpus* alone."""
    return ["taskset", "--cpu-list", ",".join(map(str, cpus)), *command]


class Gate:
    """Open while the machine does nothing else."""

    def __init__(self) -> None:
        self.least_share = 0.0
        """What a spin got of any of the CPUs when it was last looked, 0 to 1."""
        self._open_at_s = -_FRESH_S
        self._cpus: tuple[int, ...] = ()

    def is_shut(self, cpus: Sequence[int]) -> str | None:
        """Return why a number from these CPUs would be worth nothing now, or None.

        Takes 0.2 s a CPU, and no time where it was found open just before.
        """
        if set(cpus) <= set(self._cpus) and time.monotonic() - self._open_at_s < _FRESH_S:
            return None
        before = os.sched_getaffinity(0)
        began_ns, waited_us = time.monotonic_ns(), _waited_us()
        try:
            shares = {cpu: _spin(cpu) for cpu in cpus}
        finally:
            os.sched_setaffinity(0, before)
        # Of this time alone: the kernel's averages would still have the cell that is just over.
        pressure = 1000 * (_waited_us() - waited_us) / (time.monotonic_ns() - began_ns)
        found = verdict(shares, pressure)
        self.least_share = min(shares.values())
        self._open_at_s, self._cpus = time.monotonic(), () if found else tuple(cpus)
        return found


def verdict(shares: Mapping[int, float], pressure: float) -> str | None:
    """Return what is wrong, or None.

    *shares*: what a spin got of each CPU, 0 to 1; *pressure*: share of that time in which some
    task waited for a CPU.
    """
    for cpu, share in shares.items():
        if share < _LEAST_SHARE:
            return f"a spin got {100 * share:.0f} % of CPU {cpu}"
    if pressure >= _MOST_PRESSURE:
        return f"tasks waited for a CPU in {100 * pressure:.0f} % of the time"
    return None


def verdict_on_stolen(share: float) -> str | None:
    """Return what is wrong with a cell of whose CPU time the hypervisor took *share* away, or None.

    It is counted in ticks of 10 ms: one in the 0.4 s of a gate would be above the limit already,
    so that only all the time from the first gate to the second can be judged.
    """
    if share >= _MOST_STOLEN:
        return f"the hypervisor took {100 * share:.1f} % of the time away"
    return None


def _spin(cpu: int) -> float:
    os.sched_setaffinity(0, {cpu})
    began_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
    while time.monotonic_ns() - began_ns < _SPIN_NS:
        pass
    return (time.thread_time_ns() - cpu_ns) / (time.monotonic_ns() - began_ns)


def _waited_us() -> int:
    """Return how long some task has waited for a CPU since the machine was started."""
    with suppress(OSError):  # A kernel without pressure figures has the spin alone.
        found = re.search(r"^some .*total=(\d+)", _PRESSURE.read_text())
        if found:
            return int(found[1])
    return 0
