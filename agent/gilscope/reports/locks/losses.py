"""What the formats for flame graphs and profiles have in common: where threads waited for locks."""

from collections.abc import Iterator
from dataclasses import dataclass

from gilscope.model.locks import LockRecording, LockWait
from gilscope.model.stack import Stack
from gilscope.reports.locks.words import short_words

__all__ = ["LockLoss", "losses"]


@dataclass(frozen=True, slots=True)
class LockLoss:
    """The time that one thread has lost at one place."""

    wait: LockWait
    what: str
    """``object (list)``."""

    @property
    def stack(self) -> Stack:
        """Where it waited."""
        return self.wait.stack

    @property
    def ns(self) -> int:
        """How long."""
        return self.wait.wait_ns


def losses(recording: LockRecording) -> Iterator[LockLoss]:
    """Yield what threads have lost; what they were idle is none of it."""
    totals = recording.observation.totals
    for thread in () if totals is None else totals.threads:
        for wait in thread.waits:
            if wait.kind.is_contention and wait.wait_ns:
                yield LockLoss(wait, short_words(wait))
