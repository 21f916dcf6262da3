"""Decides which thread roles of a process have time series of their own, and what each shows."""

from collections.abc import Iterable, Sequence
from typing import Final

from gilscope.model.gil import Tally, ThreadTotals
from gilscope.series.by_name.ledger import Labels, Ledger
from gilscope.series.by_name.top_series import OTHER, Shown, TopSeries, shown_over_time, sums_of
from gilscope.values import dataclass

__all__ = ["MOST_ROLES", "RoleAccount", "RoleFigures", "role_figures", "roles_over_time"]

MOST_ROLES: Final = 64
"""That have series of their own in each process; all others share one."""
_AT_ONCE: Final = MOST_ROLES // 2
"""This many have them as soon as they occur, the rest of the places is for those that cost most."""
_MOST_IDLE: Final = 4 * MOST_ROLES
"""Roles that no thread has any more, and that are not exported: further ones are forgotten."""

_WAIT, _HOLD = "wait", "hold"

_Item = tuple[str, str]
"""A role and a kind."""


@dataclass(frozen=True, slots=True)
class RoleFigures:
    """What the series of one role show; all of them only grow."""

    role: str
    """``other``: of all that have none of their own."""
    waits: Tally
    holds: Tally | None
    """None: the mode does not see holds."""


class RoleAccount:
    """The roles of one process. What its threads have come to is entered again and again."""

    def __init__(self, above: Ledger | None = None) -> None:
        """Begin; where there is a ledger *above*, the series are made of that."""
        self._totals = Ledger((), above)
        self._slots = (
            TopSeries(self._totals, MOST_ROLES, width=1, at_once=_AT_ONCE)
            if above is None
            else None
        )

    def enter(self, threads: Iterable[ThreadTotals]) -> None:
        """Take over *threads*, the dead ones too; those that have no role yet are left out.

        A thread is exported with its whole time as soon as it has a role: a counter must not move
        from one role to another.
        """
        sums = _sums(threads)
        items = list(sums)
        self._totals.update(items, list(sums.values()), items, _named)
        if len(self._totals.places) > MOST_ROLES + _MOST_IDLE:
            self._totals.forget_idle(() if self._slots is None else self._slots.chosen)

    def figures(self, at_ns: int) -> tuple[RoleFigures, ...]:
        """Return what the series show now, at *at_ns*, by role."""
        return () if self._slots is None else role_figures(self._slots.shown(at_ns))


def roles_over_time(seen: Sequence[Iterable[ThreadTotals]]) -> list[tuple[RoleFigures, ...]]:
    """Return the figures at each of the snapshots in *seen*, of a process that is new."""
    totals = Ledger(())
    times = []
    for threads in seen:
        sums = _sums(threads)
        items = list(sums)
        totals.update(items, list(sums.values()), items, _named)
        times.append(sums_of(totals))
    return [role_figures(shown) for shown in shown_over_time(totals, times, MOST_ROLES, width=1)]


def _sums(threads: Iterable[ThreadTotals]) -> dict[_Item, Tally]:
    sums: dict[_Item, Tally] = {}
    for thread in threads:
        if thread.role is None:
            continue
        waits = thread.role, _WAIT
        sums[waits] = sums.get(waits, Tally()) + Tally(thread.wait_ns, thread.waits)
        if thread.held is not None:
            holds = thread.role, _HOLD
            sums[holds] = sums.get(holds, Tally()) + thread.held
    return sums


def _named(item: _Item) -> tuple[Labels, Labels]:
    role, kind = item
    return (role,), (kind,)


def role_figures(shown: Iterable[Shown]) -> tuple[RoleFigures, ...]:
    """Return what the series of roles are that show *shown*."""
    by_role: dict[str, dict[str, Tally]] = {}
    for (role, kind), ns, count in shown:
        tallies = by_role.setdefault(role, {})
        # A thread that carries the name of the rest, as dead ones do, is part of it.
        tallies[kind] = tallies.get(kind, Tally()) + Tally(ns, count)
    return tuple(
        RoleFigures(role, tallies.get(_WAIT, Tally()), tallies.get(_HOLD))
        for role, tallies in sorted(by_role.items())
        # Most programs have no more roles than get series of their own.
        if role != OTHER or any(tally != Tally() for tally in tallies.values())
    )
