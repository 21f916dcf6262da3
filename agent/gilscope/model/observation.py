"""What is known of a traced process at one instant, by what is measured in it."""

from gilscope.model.gil import GilObservation, Process
from gilscope.model.locks import LockObservation, LockProcess
from gilscope.model.transactions import StmObservation, StmProcess
from gilscope.values import dataclass

__all__ = ["AnyProcess", "Observation"]

AnyProcess = Process | StmProcess | LockProcess
"""By what is measured in it."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One process. What is None is not measured in it; something is."""

    gil: GilObservation | None = None
    transactions: StmObservation | None = None
    locks: LockObservation | None = None

    @property
    def process(self) -> AnyProcess:
        """What it is called, and how it is traced."""
        seen = self.gil or self.transactions or self.locks
        assert seen is not None  # noqa: S101 - see above
        return seen.process

    @property
    def key(self) -> tuple[object, ...]:
        """What it is an observation of: numbers of processes come again."""
        return tuple((type(seen), seen.process.pid, seen.since_ns) for seen in self._all)

    @property
    def at_ns(self) -> int:
        """CLOCK_MONOTONIC; 0 where nothing was seen at all."""
        times = (seen.totals.at_ns for seen in self._all if seen.totals is not None)
        return max(times, default=0)

    @property
    def has_ended(self) -> bool:
        """Whether the process has exited, or was replaced by another program."""
        return any(seen.ended for seen in self._all)

    @property
    def is_valid(self) -> bool:
        """Whether all of its figures can be trusted."""
        return not any(seen.invalid for seen in self._all)

    @property
    def _all(self) -> tuple[GilObservation | StmObservation | LockObservation, ...]:
        seen = (self.gil, self.transactions, self.locks)
        return tuple(each for each in seen if each is not None)
