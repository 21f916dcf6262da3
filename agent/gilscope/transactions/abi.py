"""Every way in which an event of a transaction can be lost, shared with the BPF programs."""

from enum import Enum

__all__ = ["StmLoss", "defines"]


class StmLoss(Enum):
    """A reason; the order is the number that the programs are compiled with.

    The names are some of `gilscope.gil.abi`: both are values of the same label.
    """

    READ_FAULT = "read_fault"
    """A page of the target's memory was not readable at that instant."""
    TABLE_FULL = "table_full"
    """A BPF map had no room for another thread, transaction or reason."""
    BEGAN_UNSEEN = "began_unseen"
    """A transaction had begun before the probes were there; its end is counted, its time is not."""
    ABANDONED = "abandoned"
    """A transaction of which no end was seen before its thread began another one, or ended."""
    THREAD_REUSED = "thread_reused"
    """A dead thread's number went to another process before it was listed."""


def defines() -> dict[str, int]:
    """Return the macros that give the programs these numbers."""
    return {f"LOST_{loss.name}": number for number, loss in enumerate(StmLoss)}
