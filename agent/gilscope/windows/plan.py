"""What tracing may cost a process beyond that of its GIL."""

from gilscope.budget.governor import Budget
from gilscope.budget.trap_costs import ASSUMED, TrapCosts
from gilscope.values import dataclass

__all__ = ["WindowPlan"]


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """How closely processes are observed."""

    costs: TrapCosts = ASSUMED
    """What a trap costs on this machine."""
    budget: Budget | None = None
    """What that may cost a process; where all the time would cost more, it is observed in windows.
    None: all the time, whatever that costs."""
