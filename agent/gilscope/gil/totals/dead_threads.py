"""Keeps what the threads of one process that have ended had lost."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gilscope.model.gil import ThreadTotals

__all__ = ["OTHER_ROLES", "DeadThreads"]

OTHER_ROLES: Final = "other"
"""The role of threads whose own role is not kept."""

_FIRST_ROLES: Final = 64
"""That occur are kept for good: most programs have no more."""
_COSTLIEST_ROLES: Final = 64
"""Of the others, by the time for which they waited and held."""
_MOST_ROLES: Final = 192


class DeadThreads:
    """One entry for each thread, or one for each role; never more than a bounded number of roles.

    A program that runs functions with ever new names, as a notebook does, takes no more memory for
    that: the roles that matter least are added up under `OTHER_ROLES`.
    """

    def __init__(self) -> None:
        self._listed: list[ThreadTotals] = []
        self._by_role: dict[str | None, ThreadTotals] = {}
        self._others: ThreadTotals | None = None

    def __iter__(self) -> Iterator[ThreadTotals]:
        yield from self._by_role.values()
        if self._others is not None:
            yield self._others
        yield from self._listed

    def __len__(self) -> int:
        return len(self._by_role) + len(self._listed) + (self._others is not None)

    def keep(self, thread: ThreadTotals) -> None:
        """Keep *thread* by itself."""
        self._listed.append(thread)

    def add(self, thread: ThreadTotals) -> None:
        """Add *thread*, and all that are listed by themselves, to the others of their roles."""
        listed, self._listed = self._listed, []
        for each in (*listed, thread):
            known = self._by_role.get(each.role)
            self._by_role[each.role] = replace(each, tid=0) if known is None else _sum(known, each)
        if len(self._by_role) > _MOST_ROLES:
            self._fold()

    def _fold(self) -> None:
        roles = list(self._by_role)
        later = sorted(roles[_FIRST_ROLES:], key=lambda role: _cost_ns(self._by_role[role]))
        for role in later[:-_COSTLIEST_ROLES]:
            folded = replace(self._by_role.pop(role), role=OTHER_ROLES)
            self._others = folded if self._others is None else _sum(self._others, folded)


def _cost_ns(thread: ThreadTotals) -> int:
    return thread.wait_ns + (0 if thread.held is None else thread.held.ns)


def _sum(one: ThreadTotals, other: ThreadTotals) -> ThreadTotals:
    return replace(
        one,
        lost={kind: one.lost[kind] + tally for kind, tally in other.lost.items()},
        drop_requests=one.drop_requests + other.drop_requests,
        failed_wakeups=one.failed_wakeups + other.failed_wakeups,
        held=one.held + other.held if one.held is not None and other.held is not None else None,
    )
