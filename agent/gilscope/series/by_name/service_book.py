"""Keeps what is known by name of the processes of one service, those that have ended included."""

from typing import Final

from gilscope.series.by_name.blame_series import BlameSeries, BlameSlots, Limits, blame_ledgers
from gilscope.series.by_name.ledger import Ledger
from gilscope.series.by_name.top_series import TopSeries
from gilscope.series.roles import RoleFigures, role_figures
from gilscope.text.units import NS_PER_S

__all__ = ["IDLE_NS", "MOST_LINES", "ServiceBook"]

IDLE_NS: Final = 1800 * NS_PER_S
"""A service outlives its processes, and new ones run new code: lines that move keep no series."""
_LEAST_ROLES: Final = 4
MOST_LINES: Final = 4096
"""Of each ledger. What is lost at more places is counted, and forgotten by name."""


class ServiceBook:
    """Adds up what its processes lose; their ledgers tell those of this book."""

    def __init__(self, pairs: int) -> None:
        """Give *pairs* pairs series of their own, and places and roles in proportion."""
        self.ledgers = blame_ledgers((), asks_holder=False)
        self.roles = Ledger(())
        self._slots = BlameSlots(
            self.ledgers,
            Limits(pairs, 3 * pairs // 2, -(-pairs // 2), pairs, are_series=True, idle_ns=IDLE_NS),
        )
        roles = max(pairs, _LEAST_ROLES)
        self._role_slots = TopSeries(
            self.roles, roles, width=1, at_once=roles // 2, idle_ns=IDLE_NS
        )

    def blame(self, at_ns: int) -> BlameSeries:
        """Return what the series show now, at *at_ns*."""
        return self._slots.blame(at_ns)

    def role_figures(self, at_ns: int) -> tuple[RoleFigures, ...]:
        """Return what the series of thread roles show now, at *at_ns*."""
        return role_figures(self._role_slots.shown(at_ns))

    def forget_trifles(self) -> None:
        """Forget by name what has no series of its own, where it is much."""
        self._slots.forget_trifles(MOST_LINES)
        if len(self.roles.lines) > MOST_LINES:
            self.roles.forget_all_but(self._role_slots.chosen)
