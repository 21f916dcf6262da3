"""What tracing the locks of one process costs it."""

import time

from gilscope.budget.recent_cost import RecentCost
from gilscope.budget.token_bucket import Usage
from gilscope.model.gil import TracingCost
from gilscope.process.cpu_time import process_cpu_ns

__all__ = ["LockCost"]


class LockCost:
    """The account of one process: each of its traps, at the price of one on the contended path."""

    def __init__(self, pid: int, trap_ns: float) -> None:
        """Begin now, with no trap."""
        self._pid = pid
        self._trap_ns = trap_ns
        self._began_cpu_ns = process_cpu_ns(pid) or 0
        self._usage = Usage(time.monotonic_ns(), self._began_cpu_ns, 0, 0)
        self._recent = RecentCost(self._usage)

    def cost(self, traps: int, *, is_alive: bool) -> TracingCost:
        """Return the cost of *traps*, all that there were, and that of the last minute."""
        cost_ns = int(traps * self._trap_ns)
        cpu_ns = process_cpu_ns(self._pid) if is_alive else None
        if cpu_ns is None:
            cpu_ns = self._usage.cpu_ns
        self._usage = Usage(time.monotonic_ns(), cpu_ns, cost_ns, cost_ns)
        self._recent.note(self._usage)
        used_ns = cpu_ns - self._began_cpu_ns
        return TracingCost(
            cost_ns, self._recent.ratio(self._usage), traps, used_ns=max(0, used_ns - cost_ns)
        )
