"""What tracing has cost a process lately."""

from collections import deque
from typing import Final

from gilscope.budget.token_bucket import Usage

__all__ = ["RecentCost"]

_S: Final = 1_000_000_000
_RECENT_NS: Final = 60 * _S
"""The overhead that is shown is that of the last minute."""
_SAMPLE_NS: Final = 2 * _S


class RecentCost:
    """Knows what had been used a minute ago."""

    def __init__(self, usage: Usage) -> None:
        """Begin with *usage*."""
        self._samples = deque([usage])
        """Of the last minute, oldest first."""

    def note(self, usage: Usage) -> None:
        """Take in what has been used until now."""
        if usage.at_ns - self._samples[-1].at_ns >= _SAMPLE_NS:
            self._samples.append(usage)
        while self._samples[0].at_ns < usage.at_ns - _RECENT_NS and len(self._samples) > 1:
            self._samples.popleft()

    def ratio(self, usage: Usage) -> float:
        """Return the cost of the last minute by the CPU time that the process used itself.

        *usage* is what was noted last.
        """
        first = self._samples[0]
        cost_ns = usage.cost_ns - first.cost_ns
        own_ns = usage.cpu_ns - first.cpu_ns - cost_ns
        return cost_ns / own_ns if own_ns > 0 else 0.0
