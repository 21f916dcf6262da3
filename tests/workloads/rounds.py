"""Runs a fixed amount of work once for every command, and reports the CPU time it took.

A bench needs the same process with and without probes, in turns: it sends a line for each round
and ends the process by closing stdin.
"""

import resource
from typing import Callable

from handshake import next_command, ready, say
from old_pythons import perf_counter_ns

__all__ = ["cpu_ns", "serve_rounds"]


def cpu_ns() -> int:
    """Return the CPU time of the process so far, user and system, of all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)


def serve_rounds(work: "Callable[[], None]", units: int) -> None:
    """Say ready, then do the *units* of work once a command, until the end of stdin."""
    work()
    ready(units=units)
    while next_command() is not None:
        wall_before_ns, cpu_before_ns = perf_counter_ns(), cpu_ns()
        work()
        spent_ns = cpu_ns() - cpu_before_ns
        say(
            {
                "done": True,
                "units": units,
                "cpu_ns": spent_ns,
                "wall_ns": perf_counter_ns() - wall_before_ns,
                "cpu_ns_per_unit": spent_ns / units,
            }
        )
