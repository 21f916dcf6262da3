"""Decides of which share of its waits a process has the stacks read, to keep within a budget.

To read two stacks costs several times what it costs to see the wait itself. Half of what the budget
leaves beside the traps of the waits is spent on stacks, so that windows of full mode get the other
half; and a tenth of the budget in any case, or nobody would know who keeps whom waiting in a
process whose waits alone use it up. Each wait has the same chance, whatever its length and place.

The share falls at once and rises slowly, for a process that is busy now and then.
"""

from typing import Final

from gilscope.budget.token_bucket import Budget, Usage

__all__ = ["StackSampling"]

_S: Final = 1_000_000_000

_FIRST_LOOK_NS: Final = _S
_LOOK_NS: Final = 4 * _S
"""How long the cost of stacks is added up before the share is set from it."""
_LONGEST_REST_NS: Final = 20 * _S
"""For which CPU time adds up, a share of which may be spent at once."""
_PART: Final = 0.5
"""Of what the traps leave of the budget."""
_LEAST_PART: Final = 0.1
"""Of the budget."""
_RISE: Final = 1.5
"""Most that the share rises by from one check to the next."""
_LEAST_SHARE: Final = 0.001
"""From less it would take minutes to rise again."""


class StackSampling:
    """The share of one process. It begins with all waits."""

    def __init__(self, budget: Budget, usage: Usage) -> None:
        """Keep to *budget* from *usage* on."""
        self.share = 1.0
        self.due_ns = usage.at_ns + _FIRST_LOOK_NS
        """When `look` can decide again, CLOCK_MONOTONIC."""
        self._budget = budget
        self._seen = usage

    def look(self, usage: Usage) -> bool:
        """Return whether *usage* has changed the share."""
        if usage.at_ns < self.due_ns:
            return False
        before, self._seen = self._seen, usage
        self.due_ns = usage.at_ns + _LOOK_NS
        share = min(1.0, _RISE * self.share)
        walking_ns = usage.walking_ns - before.walking_ns
        if walking_ns > 0:
            share = min(share, self.share * self._allowed_ns(before, usage) / walking_ns)
        share = max(_LEAST_SHARE, share)
        has_changed = share != self.share
        self.share = share
        return has_changed

    def put_off(self, now_ns: int) -> bool:
        """Put `look` off if no wait since the last one leaves it nothing to change.

        Return whether it is put off. Most of a thousand processes are idle.
        """
        if self.share < 1.0 or now_ns - self._seen.at_ns > _LONGEST_REST_NS:
            return False
        self.due_ns = now_ns + _LOOK_NS
        return True

    def _allowed_ns(self, before: Usage, usage: Usage) -> float:
        """Return what the stacks of the waits in between may have cost."""
        granted_ns = self._budget.granted_ns(before, usage)
        traps_ns = usage.waits_ns - before.waits_ns
        return max(_PART * (granted_ns - traps_ns), _LEAST_PART * granted_ns)
