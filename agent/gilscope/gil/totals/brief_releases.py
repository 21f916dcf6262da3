"""Sums up the waits that came after a call so short that the GIL need not have been released."""

from collections import defaultdict
from collections.abc import Callable

from gilscope.model.gil import BriefRelease, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import Stack
from gilscope.values import Record

__all__ = ["BRIEF_NS", "BriefReleases"]

BRIEF_NS = 100_000
"""A fiftieth of the usual switch interval: for so long nobody would have missed the GIL."""
_MOST_STACKS = 4096
"""Of one process; what further ones have cost is at an unknown stack."""
_FURTHER = 0
"""The number of no stack."""
_AFTER_CALLS = {Kind.BLOCKING_CALL.number, Kind.CONVOY.number}

_Sums = tuple[int, int, int]


class BriefReleases:
    """By the stack that a thread waited in: number, time without need of the GIL, and wait."""

    def __init__(self) -> None:
        """Know of none."""
        self._sums: dict[int, dict[int, _Sums]] = defaultdict(dict)

    def add(self, record: Record) -> None:
        """Note the span *record*, if it is a wait that took longer than the brief call before."""
        away_ns = record["away_ns"]
        # Of most spans, which come by the thousands, that is all that is asked.
        if not 0 < away_ns < BRIEF_NS or record["kind"] not in _AFTER_CALLS:
            return
        wait_ns = record["ended_ns"] - record["began_ns"]
        if wait_ns <= away_ns:
            return
        sums = self._sums[record["tgid"]]
        waiter = record["waiter"]
        if waiter not in sums and len(sums) >= _MOST_STACKS:
            waiter = _FURTHER
        number, away_so_far_ns, waited_ns = sums.get(waiter, (0, 0, 0))
        sums[waiter] = number + 1, away_so_far_ns + away_ns, waited_ns + wait_ns

    def of(self, pid: int, stack_of: Callable[[int], Stack]) -> tuple[BriefRelease, ...]:
        """Return those of process *pid*, the costliest first; *stack_of* knows stacks by number."""
        found: dict[Stack, BriefRelease] = {}
        for waiter, (number, away_ns, wait_ns) in self._sums.get(pid, {}).items():
            stack = stack_of(waiter)
            new = BriefRelease(stack, away_ns, Tally(wait_ns, number))
            found[stack] = found[stack] + new if stack in found else new
        return tuple(sorted(found.values(), key=lambda each: -each.waited.ns))

    def forget(self, pid: int) -> None:
        """Give up what is kept of process *pid*."""
        self._sums.pop(pid, None)
