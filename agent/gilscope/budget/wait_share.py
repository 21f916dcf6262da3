"""Decides in which part of the time the waits of a process are seen, to keep within a budget.

All of them, as long as the traps of waits alone cost no more than the budget. Where they do, they
are seen in windows, which get most of the budget; what is left pays for stacks and for windows of
full mode.

The share falls at once and rises slowly, for a process that is busy now and then. Whenever it
changes the figures are read, so it changes seldom, and by steps that are worth it.
"""

from random import Random
from typing import Final

from gilscope.budget.token_bucket import Budget, Usage
from gilscope.values import dataclass

__all__ = ["WINDOW_NS", "WaitSchedule", "WaitShare"]

_NEVER_NS: Final = 1 << 63
_S: Final = 1_000_000_000
_MS: Final = 1_000_000

WINDOW_NS: Final = 500 * _MS
"""Long beside a switch interval and what it costs to put the probes in; and a minute has many."""
_FIRST_LOOK_NS: Final = _S
_LOOK_NS: Final = 4 * _S
_LOOK_WITH_WINDOWS_NS: Final = 20 * _S
_WINDOWS_OF_LOOK: Final = 4
"""How many there are in it at the least: the share follows their mean, not a single one."""
_PART: Final = 0.6
"""Of the budget that windows of waits get."""
_WORTH_IT: Final = 0.8
"""Of the budget: if it would cost less to see all waits, all are seen again."""
_QUIET_LOOKS: Final = 3
"""After which all waits are seen again: a process may be busy now and then."""
_LEAST: Final = 0.02
_LEAST_PAUSE_NS: Final = 100 * _MS
"""Between two windows."""
_RISE: Final = 1.5
_STEP: Final = 0.15
"""By less than that the share does not change."""


class WaitShare:
    """The share of the time of one process. It begins with all."""

    def __init__(self, budget: Budget, usage: Usage, *, most: float = 0.5) -> None:
        """Keep to *budget* from *usage* on; windows may cover the share *most* of the time."""
        self.share = 1.0
        self._most = most
        self._quiet_looks = 0
        """In a row, that would have found all waits cheap."""
        self.due_ns = usage.at_ns + _FIRST_LOOK_NS
        """When `look` can decide again, CLOCK_MONOTONIC."""
        self._budget = budget
        self._seen = usage

    def look(self, usage: Usage) -> bool:
        """Return whether *usage* has changed the share."""
        if usage.at_ns < self.due_ns:
            return False
        before, self._seen = self._seen, usage
        granted_ns = self._budget.granted_ns(before, usage)
        traps_ns = usage.waits_ns - before.waits_ns
        share = self._wanted(granted_ns, traps_ns)
        is_changed = share in {1.0, self.share} or abs(share - self.share) > _STEP * self.share
        is_changed = is_changed and share != self.share
        self.due_ns = usage.at_ns + self._look_ns
        if is_changed:
            self.share = share
            # What the process uses until the share holds says nothing of it.
            self.due_ns = _NEVER_NS
        return is_changed

    def restart(self, usage: Usage) -> None:
        """Judge the share by what comes after *usage*: it holds from now on."""
        self._seen = usage
        self.due_ns = usage.at_ns + self._look_ns

    @property
    def _look_ns(self) -> int:
        if self.share == 1.0:
            return _LOOK_NS
        return max(_LOOK_WITH_WINDOWS_NS, int(_WINDOWS_OF_LOOK * WINDOW_NS / self.share))

    def see_all(self) -> None:
        """Let all waits be seen from now on, whatever that costs."""
        self.share, self.due_ns = 1.0, _NEVER_NS

    def put_off(self, now_ns: int) -> bool:
        """Put `look` off if no wait since the last one leaves it nothing to change.

        Return whether it is put off. Most of a thousand processes are idle.
        """
        if self.due_ns == _NEVER_NS:
            return True
        if self.share < 1.0 or now_ns - self._seen.at_ns > _LOOK_WITH_WINDOWS_NS:
            return False
        self.due_ns = now_ns + _LOOK_NS
        return True

    def _wanted(self, granted_ns: float, traps_ns: float) -> float:
        if self.share == 1.0 and traps_ns <= granted_ns:
            return 1.0
        is_quiet = traps_ns < self.share * _WORTH_IT * granted_ns
        self._quiet_looks = self._quiet_looks + 1 if is_quiet else 0
        if self._quiet_looks >= _QUIET_LOOKS:
            return 1.0
        wanted = self.share * _PART * granted_ns / max(1, traps_ns)
        return max(_LEAST, min(wanted, _RISE * self.share, self._most))


@dataclass(slots=True)
class WaitSchedule:
    """When windows of waits begin: one in each of the spells of time that the share makes.

    Where in its spell each is, is drawn at random, so that whatever repeats itself in a process is
    seen at every phase; and there are as many as the share says, in a minute too.
    """

    random: Random
    from_ns: int = 0
    """When the next one begins, CLOCK_MONOTONIC."""
    spell_ns: int = 0
    """When its spell does."""
    _next_ns: int = 0
    """And the one after that."""

    def begin(self, spell_ns: int, now_ns: int, share: float) -> int:
        """Plan the first one, for windows that cover *share* of the time from *spell_ns* on.

        Return how many were missed until *now_ns*.
        """
        self._next_ns = spell_ns
        return self.advance(now_ns, share)

    def advance(self, now_ns: int, share: float) -> int:
        """Plan the next one, in the spell behind that of the last; return how many were missed."""
        length_ns = int(WINDOW_NS / share)
        # Nothing is made up for where the agent was stopped: its windows would come at once.
        late_ns = max(0, now_ns - length_ns - self._next_ns)
        self.spell_ns = self._next_ns + late_ns
        room_ns = length_ns - WINDOW_NS - _LEAST_PAUSE_NS
        self.from_ns = self.spell_ns + int(max(0, room_ns) * self.random.random())
        self._next_ns = self.spell_ns + length_ns
        return -(-late_ns // length_ns)
