"""What transactions have lost, by what stands in profiles: threads, waits by kind, reasons."""

from collections.abc import Iterator

from gilscope.model.transactions import StmTotals
from gilscope.values import dataclass

__all__ = ["Loss", "losses"]

_OTHERS = "[threads not told apart]"


@dataclass(frozen=True, slots=True)
class Loss:
    """Time that was lost at one place of a profile."""

    root: str
    """``aborts`` or ``pauses``."""
    name: str
    """Of the thread whose tries were aborted, or what was waited for."""
    ns: int
    count: int


def losses(totals: StmTotals) -> Iterator[Loss]:
    """Yield all that was lost, each nanosecond once; what is not seen is not there."""
    for kind, tally in (totals.waits or {}).items():
        yield Loss("pauses", kind, tally.ns, tally.count)
    if totals.aborted is None:
        return
    left_ns, left = totals.aborted.sum_ns, totals.aborts or 0
    for thread in totals.threads:
        told_ns, told = min(left_ns, thread.aborted.ns), min(left, thread.aborted.count)
        yield Loss("aborts", thread.name or f"thread {thread.tid}", told_ns, told)
        left_ns, left = left_ns - told_ns, left - told
    yield Loss("aborts", _OTHERS, left_ns, left)
