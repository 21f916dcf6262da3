"""What tracing one process in windows costs it."""

import time

from gilscope.budget.governor import Usage
from gilscope.budget.recent_cost import RecentCost
from gilscope.model.gil import TracingCost
from gilscope.process.cpu_time import process_cpu_ns
from gilscope.windows.window import ProbeWindow

__all__ = ["WindowCost"]


class WindowCost:
    """The account of one process. Every trap is counted at the price that it had at that time."""

    def __init__(self, pid: int, window: ProbeWindow) -> None:
        """Begin now, with what *window* of process *pid* has cost so far."""
        self._pid = pid
        self._window = window
        self._traps = window.traps()
        self._unseen_ns = 0.0
        cost_ns = window.cost_ns()
        self.usage = Usage(time.monotonic_ns(), process_cpu_ns(pid) or 0, cost_ns, cost_ns)
        self._recent = RecentCost(self.usage)

    def update(self, *, is_alive: bool = True) -> None:
        """Read what traps have cost until now, and what the process has used if it *is_alive*."""
        window, last = self._window, self.usage
        now_ns = time.monotonic_ns()
        self._traps = max(self._traps, window.traps())
        unseen_ns = window.take_unseen_ns()
        if unseen_ns:
            # The process is taken to have gone on as in its windows.
            covered_ns = max(1, window.observed_ns(now_ns))
            self._unseen_ns += window.cost_ns() / covered_ns * unseen_ns
        cost_ns = max(last.cost_ns, window.cost_ns() + int(self._unseen_ns))
        # The number of one that has ended may be another process' by now.
        cpu_ns = process_cpu_ns(self._pid) if is_alive else None
        self.usage = Usage(
            at_ns=now_ns,
            cpu_ns=last.cpu_ns if cpu_ns is None else cpu_ns,
            cost_ns=cost_ns,
            window_cost_ns=cost_ns,
        )
        self._recent.note(self.usage)

    def cost(self) -> TracingCost:
        """Return the cost until the last update, and that of the minute before it."""
        return TracingCost(self.usage.cost_ns, self._recent.ratio(self.usage), self._traps)
