"""What tracing transactions may cost."""

from dataclasses import dataclass

from gilscope.budget.governor import Budget
from gilscope.budget.trap_costs import ASSUMED, TrapCosts

__all__ = ["StmPlan"]


@dataclass(frozen=True, slots=True)
class StmPlan:
    """How closely processes with transactions are observed."""

    costs: TrapCosts = ASSUMED
    """What a trap costs on this machine."""
    budget: Budget | None = None
    """What that may cost a process; where all the time would cost more, it is observed in windows.
    None: all the time, whatever that costs."""
