"""Which figures of a process are estimates, and the mark that these carry."""

from gilscope.model.gil import ProcessTotals

__all__ = ["about", "are_shared_out", "is_held_estimated"]

_WHOLE = 0.9
"""Where windows of full mode cover so much of the time, what is held is counted."""


def about(*, is_estimate: bool) -> str:
    """Return what stands before a figure that may be an estimate."""
    return "≈ " if is_estimate else ""


def are_shared_out(totals: ProcessTotals) -> bool:
    """Return whether what places have lost is scaled up from a part of the waits.

    From those in windows of waits, or those whose stacks are read.
    """
    cost = totals.cost
    if cost is None:
        return False
    is_sampled = cost.stack_share is not None and cost.stack_share < 1
    return is_sampled or cost.waits_unseen_ns > 0


def is_held_estimated(observed_ns: int | None, elapsed_ns: int) -> bool:
    """Return whether held time is sampled; *observed_ns* of *elapsed_ns* were windows."""
    return observed_ns is None or observed_ns < _WHOLE * elapsed_ns
