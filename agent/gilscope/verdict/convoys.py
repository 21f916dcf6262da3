"""Finds the threads that queue for a whole switch interval each time they come back."""

from gilscope.model.application import Application
from gilscope.model.gil import ProcessTotals, Recording, Tally
from gilscope.model.kinds import Kind
from gilscope.series.holders import HolderLoss, losses_by_holder
from gilscope.values import dataclass
from gilscope.verdict.degree import CONVOYS_A_SECOND, MILD_THREADS, SEVERE_THREADS, Degree
from gilscope.verdict.role_losses import RoleLoss, role_losses

__all__ = ["Convoy", "convoys_of"]

_LEAST_WAITS = 10
"""From here on it is a pattern and not an accident."""


@dataclass(frozen=True, slots=True)
class Convoy:
    """Threads of one role that queue, and behind whom."""

    role: str
    degree: Degree
    lost: Tally
    """In waits of a whole switch interval or longer."""
    returns: int
    """How often they had to wait when they came back from a blocking call."""
    acquires: int | None
    """How often they acquired the GIL, waiting or not; None: only waits were seen."""
    is_estimate: bool
    """Whether that number is one, from windows."""
    threads: int
    time_share: float
    """How much of the time of all of them that is."""
    interval_ns: int
    """The longest switch interval, or what stands for it."""
    asks_holder: bool
    """Whether there is one."""
    behind: tuple[HolderLoss, ...]
    """Whose code kept the GIL in all waits of that kind, the costliest first; empty: stacks were
    not read."""
    computing: tuple[str, ...]
    """Other roles whose threads are preempted meanwhile."""

    @property
    def mean_ns(self) -> int:
        """How long such a wait acquires."""
        return self.lost.ns // max(1, self.lost.count)


def convoys_of(recording: Recording) -> tuple[Convoy, ...]:
    """Return the convoys of *recording*, the costliest first; none that nobody would notice."""
    totals = recording.observation.totals
    interval_ns = max((gil.interval_ns for gil in totals.gils), default=0)
    behind = _behind(totals, recording.application)
    convoys = []
    losses = role_losses([recording])
    for loss in losses:
        lost = loss.lost.get(Kind.CONVOY, Tally())
        degree = _degree(lost, recording.duration_ns)
        if degree is not Degree.NONE:
            computing = tuple(
                other.role
                for other in losses
                if Kind.PREEMPTION in other.lost and other.role != loss.role
            )
            asks_holder = recording.observation.process.asks_holder
            convoy = _convoy(loss, degree, (interval_ns, asks_holder), behind, computing)
            convoys.append(convoy)
    return tuple(sorted(convoys, key=lambda convoy: -convoy.lost.ns))


def _degree(lost: Tally, duration_ns: int) -> Degree:
    waiting = lost.ns / max(1, duration_ns)
    if lost.count < _LEAST_WAITS or waiting < MILD_THREADS:
        return Degree.NONE
    often = lost.count * 1_000_000_000 / max(1, duration_ns) > CONVOYS_A_SECOND
    return Degree.SEVERE if often and waiting > SEVERE_THREADS else Degree.MILD


def _convoy(
    loss: RoleLoss,
    degree: Degree,
    interval: tuple[int, bool],
    behind: tuple[HolderLoss, ...],
    computing: tuple[str, ...],
) -> Convoy:
    lost = loss.lost[Kind.CONVOY]
    short = loss.lost.get(Kind.BLOCKING_CALL, Tally())
    return Convoy(
        role=loss.role,
        degree=degree,
        lost=lost,
        returns=lost.count + short.count,
        acquires=loss.acquires,
        is_estimate=loss.is_estimate,
        threads=loss.threads,
        time_share=lost.ns / max(1, loss.time_ns),
        interval_ns=interval[0],
        asks_holder=interval[1],
        behind=behind,
        computing=computing,
    )


def _behind(totals: ProcessTotals, application: Application) -> tuple[HolderLoss, ...]:
    edges = (edge for edge in totals.edges if edge.kind is Kind.CONVOY)
    held_up = (each for each in totals.held_up if each.kind is Kind.CONVOY)
    return losses_by_holder(edges, application, held_up)
