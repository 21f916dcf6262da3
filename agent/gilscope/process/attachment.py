"""A process that is traced, whatever is measured in it, and for how long that is remembered."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field

from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import DirectReads, Reads
from gilscope.text.units import NS_PER_S
from gilscope.values import dataclass

__all__ = ["Attachment", "Retention"]

_MOST_UNTOLD = 256
_UNTOLD_KEPT = 20
"""How many times as long those are kept whose end nobody has seen: a worker that ends between two
scrapes would take what it has counted with it."""


@dataclass(slots=True, kw_only=True)
class Attachment:
    """One process with probes in it, or that had them.

    Its *pidfd* and its *memory* stay bound to the program that ran when they were opened: whatever
    comes after it has the same number, but is not reached through them.
    """

    pid: int
    """As the agent sees it."""
    pidfd: int
    memory: ProcessMemory
    since_ns: int
    """CLOCK_MONOTONIC when the probes were in place."""
    reads: Reads = field(default_factory=DirectReads)
    """What its memory is read by."""
    breakpoints: Sequence[int] = ()
    """Where probes are in its memory."""
    invalid: str = ""
    """Why its figures cannot be trusted, or nothing is counted any more; empty: they can."""
    ended_ns: int | None = None
    """When its end was noticed, or its probes were taken out; None: it is traced."""

    @property
    def ended(self) -> bool:
        """Whether it has ended, or is not traced any more."""
        return self.ended_ns is not None

    def runs_the_same(self) -> bool:
        """Return whether the process still runs the program that was attached."""
        return self.memory.is_there

    def close(self) -> None:
        """Close what stands for the process."""
        self.memory.close()
        os.close(self.pidfd)


@dataclass(frozen=True, slots=True)
class Retention:
    """For how long, at what was told last."""

    kept_s: float
    """Infinity: for ever."""
    told_ns: int = 0
    """When all that was known was told to somebody last, on the monotonic clock."""

    def over(self, ended_ns: Mapping[int, int], now_ns: int) -> list[int]:
        """Return those of the processes in *ended_ns*, by when they ended, that need not be kept.

        Of those whose end was not told yet, which is no more than minutes, some hundreds are kept.
        """
        kept_ns = self.kept_s * NS_PER_S
        over = []
        untold = []
        for pid, at_ns in ended_ns.items():
            if now_ns - at_ns < kept_ns:
                continue
            if at_ns < self.told_ns or now_ns - at_ns >= _UNTOLD_KEPT * kept_ns:
                over.append(pid)
            else:
                untold.append(pid)
        untold.sort(key=ended_ns.__getitem__)
        return over + untold[: max(0, len(untold) - _MOST_UNTOLD)]
