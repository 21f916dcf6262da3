"""What tracing costs one process: its traps, each at the price that it had at that time."""

import time
from dataclasses import field

from gilscope.budget.governor import Usage
from gilscope.budget.prices import Prices, Sharing
from gilscope.budget.recent_cost import RecentCost
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window import Window
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.gil.waits.window import WaitWindow
from gilscope.model.gil import TracingCost
from gilscope.process.cpu_time import process_cpu_ns
from gilscope.values import dataclass

__all__ = ["CostAccount"]


@dataclass(slots=True)
class CostAccount:
    """What tracing costs one process."""

    window: Window | None
    prices: Prices
    usage: Usage
    window_traps: int = 0
    waiting_traps: int = 0
    walking_ns: int = 0
    placed_for_ns: int = 0
    """For how long the probes on waits have been there, where they come and go."""
    lingered_ns: int = 0
    """For how long they were there without being seen."""
    placed_traps: int = 0
    """How many were seen since the probes were taken out last."""
    _recent: RecentCost = field(init=False)
    _began_cpu_ns: int = field(init=False)

    def __post_init__(self) -> None:
        """Begin with what is known."""
        self._began_cpu_ns = self.usage.cpu_ns
        self._recent = RecentCost(self.usage)

    def update(self, traced: AttachedProcess, probe: GilProbe, sharing: Sharing) -> None:
        """Read what the process has used until now; of one that has gone, what is known stays.

        The traps since the last time are taken to have met *sharing*.
        """
        if traced.ended:
            return
        window_traps = 0 if self.window is None else self.window.traps()
        waiting_traps = probe.traps(traced.pid)
        now_ns = time.monotonic_ns()
        unseen = self._unseen_traps(now_ns)
        window_ns = int((window_traps - self.window_traps + unseen) * self.prices.full_ns(sharing))
        new_traps = waiting_traps - self.waiting_traps
        new_traps += self._unseen_waiting_traps(traced.wait_window, new_traps)
        waiting_ns = int(new_traps * self.prices.contention_ns(sharing))
        walking_ns = probe.walking_ns(traced.pid)
        waiting_ns += walking_ns - self.walking_ns
        self.window_traps, self.waiting_traps = window_traps, waiting_traps
        self.walking_ns = walking_ns
        cpu_ns = process_cpu_ns(traced.pid)
        self.usage = Usage(
            at_ns=now_ns,
            cpu_ns=self.usage.cpu_ns if cpu_ns is None else cpu_ns,
            cost_ns=self.usage.cost_ns + window_ns + waiting_ns,
            window_cost_ns=self.usage.window_cost_ns + window_ns,
            walking_ns=walking_ns,
        )
        self._recent.note(self.usage)

    def _unseen_traps(self, now_ns: int) -> float:
        """Return how many traps are likely to have come since the last time without being seen.

        A perf event stops its program at once, but takes up to a second to take the breakpoint out.
        """
        window = self.window
        if window is None or not window.closes_unseen:
            return 0.0
        if window.is_open or window.can_open:
            return 0.0
        return window.traps_per_ns * (now_ns - self.usage.at_ns)

    def _unseen_waiting_traps(self, window: WaitWindow | None, new_traps: int) -> int:
        """Return the same of the probes on waits, by the *new_traps* while they are seen."""
        if window is None or not window.closes_unseen:
            return 0
        self.placed_traps += new_traps
        placed_ns = window.placed_for_ns - self.placed_for_ns
        lingered_ns = window.lingered_ns - self.lingered_ns
        if not (placed_ns and lingered_ns):
            return 0
        unseen = self.placed_traps * lingered_ns // placed_ns
        self.placed_for_ns, self.lingered_ns = window.placed_for_ns, window.lingered_ns
        self.placed_traps = 0
        return unseen

    @property
    def traps(self) -> int:
        """How often the process has run into a probe, as far as it has been read."""
        return self.window_traps + self.waiting_traps

    def cost(self) -> TracingCost:
        """Return the cost until now and that of the last minute."""
        return TracingCost(
            overhead_ns=self.usage.cost_ns,
            recent_ratio=self._recent.ratio(self.usage),
            traps=self.traps,
            used_ns=max(0, self.usage.cpu_ns - self._began_cpu_ns - self.usage.cost_ns),
        )
