"""What tracing has cost a process lately."""

from typing import Final

from gilscope.budget.token_bucket import Usage
from gilscope.series.sliding_totals import SlidingTotals

__all__ = ["RecentCost"]

_S: Final = 1_000_000_000
_RECENT_NS: Final = 60 * _S
"""The overhead that is shown is that of the last minute."""
_APART_NS: Final = 2 * _S
_MOST_SAMPLES: Final = _RECENT_NS // _APART_NS + 1


class RecentCost:
    """Knows what had been used a minute ago."""

    def __init__(self, usage: Usage) -> None:
        """Begin with *usage*."""
        self._samples = SlidingTotals(_MOST_SAMPLES, _APART_NS)
        self.note(usage)

    def note(self, usage: Usage) -> None:
        """Take in what has been used until now."""
        self._samples.add(usage.at_ns, (usage.cost_ns, usage.cpu_ns))

    def ratio(self, usage: Usage) -> float:
        """Return the cost of the last minute by the CPU time that the process used itself.

        *usage* is what was noted last.
        """
        first = next(self._samples.between(usage.at_ns - _RECENT_NS, usage.at_ns))
        first_cost_ns, first_cpu_ns = first.totals
        cost_ns = usage.cost_ns - first_cost_ns
        own_ns = usage.cpu_ns - first_cpu_ns - cost_ns
        return cost_ns / own_ns if own_ns > 0 else 0.0
