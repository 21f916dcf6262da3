"""How closely processes are observed, and what that may cost them."""

from gilscope.budget.trap_costs import ASSUMED, TrapCosts
from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.kinds import Mode
from gilscope.values import dataclass

__all__ = ["CONTENTION", "ObservationPlan"]


@dataclass(frozen=True, slots=True)
class ObservationPlan:
    """How closely processes are observed, and what that may cost them."""

    mode: Mode
    budget_share: float = 0.01
    """Auto mode: of the CPU time that a process uses itself."""
    costs: TrapCosts = ASSUMED
    held_error: float | None = None
    """By how much held shares may be off after a minute where they are estimated; None: by as
    little as the agent can afford."""
    reads_stacks: bool = True
    """Whether the stacks of both ends of a wait are read when it begins."""
    native_stacks: bool = False
    """Whether the calls are read through which a holder came to the C code that it is in."""
    holders_cpu_share: float = 0.08
    """Of one core: what sampling the holders of all processes takes at the most. A recording of
    seconds needs some ten samples in each."""
    moments_for_s: int | None = None
    """Of the last how many seconds the worst moment is shown; None: of all of them."""
    application: Application = EVERYBODYS
    """Whose frames are told apart from libraries'."""
    shares_probes: bool = False
    """Whether probes on the contended path are placed once for a file, in all who run it."""
    sees_all_waits: bool = False
    """Whether they are all seen in auto mode too, whatever that costs."""


CONTENTION = ObservationPlan(Mode.CONTENTION)
