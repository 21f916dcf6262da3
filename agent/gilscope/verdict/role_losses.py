"""Sums up what the threads of each role have lost."""

from collections.abc import Iterable

from gilscope.model.gil import Recording, Tally, ThreadTotals
from gilscope.model.kinds import Kind
from gilscope.values import dataclass

__all__ = ["STARTING", "RoleLoss", "role_losses"]

STARTING = "starting"
"""The role of threads that have not come to their own code."""


@dataclass(frozen=True, slots=True)
class RoleLoss:
    """What the threads of one role have lost, in one process or in several."""

    role: str
    lost: dict[Kind, Tally]
    """What is neither time nor waits is left out."""
    threads: int
    """That have lost anything."""
    time_ns: int
    """For which they were seen, added up: what they might have lost at most."""
    acquires: int | None
    """How often they acquired the GIL, waiting or not; None: only waits were seen."""
    is_estimate: bool = False
    """Whether that number is one, from windows."""

    @property
    def whole(self) -> Tally:
        """What they have lost of all kinds."""
        return sum(self.lost.values(), start=Tally())

    @property
    def kind(self) -> Kind:
        """The kind of which they have lost most."""
        return max(self.lost, key=lambda kind: self.lost[kind].ns)


def role_losses(recordings: Iterable[Recording]) -> tuple[RoleLoss, ...]:
    """Return what each role has lost in all of *recordings*, the most time first."""
    by_role: dict[str, list[tuple[ThreadTotals, int]]] = {}
    for recording in recordings:
        for thread in recording.observation.totals.threads:
            if any(_is_any(tally) for tally in thread.lost.values()):
                threads = by_role.setdefault(thread.role or STARTING, [])
                threads.append((thread, recording.duration_ns))
    losses = [_loss(role, threads) for role, threads in by_role.items()]
    return tuple(sorted(losses, key=lambda loss: (-loss.whole.ns, loss.role)))


def _loss(role: str, threads: list[tuple[ThreadTotals, int]]) -> RoleLoss:
    lost: dict[Kind, Tally] = {}
    acquires: int | None = 0
    for thread, _ in threads:
        for kind, tally in thread.lost.items():
            if _is_any(tally):
                lost[kind] = lost.get(kind, Tally()) + tally
        own = thread.acquires_about if thread.held is None else thread.held.count
        acquires = None if acquires is None or own is None else acquires + own
    time_ns = sum(duration_ns for _, duration_ns in threads)
    is_estimate = any(thread.acquires_about is not None for thread, _ in threads)
    return RoleLoss(role, lost, len(threads), time_ns, acquires, is_estimate)


def _is_any(tally: Tally) -> bool:
    return bool(tally.ns or tally.count)
