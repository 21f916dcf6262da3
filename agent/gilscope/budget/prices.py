"""What the traps of one process cost it, by what a trap costs on this machine."""

from gilscope.budget.trap_costs import TrapCosts
from gilscope.values import dataclass

__all__ = ["Prices", "Sharing"]


_COLD_CACHES = 1.15
"""A trap costs a real program more than the dummy lock, whose memory is always in the caches:
11 to 24 % more were seen."""

_WHILE_OTHERS_WAIT = 2.6
"""The same on the contended path, and more: a trap there comes while the lock's mutex is held, so
that others run into that as well, and often in a thread that has just slept. Measured on a
saturated HTTP server with 4000 contended waits a second."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How many processes are probed at the same places of one file."""

    targets: int
    windows: int


@dataclass(frozen=True, slots=True)
class Prices:
    """What the traps of one process cost it."""

    costs: TrapCosts
    is_stepped: bool

    def full_ns(self, sharing: Sharing) -> float:
        """Return the cost of a trap at an acquire or release site."""
        alone_ns = self.costs.stepped_ns if self.is_stepped else self.costs.full_ns
        return _COLD_CACHES * (alone_ns + self.costs.sharing_ns * max(0, sharing.windows - 1))

    def contention_ns(self, sharing: Sharing) -> float:
        """Return the cost of a trap on the contended path."""
        alone_ns = self.costs.stepped_ns if self.is_stepped else self.costs.contention_ns
        return _WHILE_OTHERS_WAIT * (alone_ns + self.costs.sharing_ns * max(0, sharing.targets - 1))
