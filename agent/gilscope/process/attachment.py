"""A process that is traced, whatever is measured in it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import DirectReads, Reads

__all__ = ["Attachment"]


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
