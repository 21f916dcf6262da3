"""How much CPU time another process has used, to the nanosecond and without reading /proc."""

import time

__all__ = ["process_cpu_ns"]

# include/linux/posix-timers.h: a clock id holds the complement of the pid above three bits, of
# which 2 (CPUCLOCK_SCHED) asks for the time that the scheduler has counted, of all threads.
_SCHEDULED = 2


def process_cpu_ns(pid: int) -> int | None:
    """Return the CPU time of all threads of *pid*, dead ones included; None if it has gone."""
    try:
        return time.clock_gettime_ns((~pid << 3) | _SCHEDULED)
    except OSError:
        return None
