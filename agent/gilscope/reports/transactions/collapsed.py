"""What transactions have lost as collapsed stacks, which flame graphs are drawn from.

One line each: ``aborts`` and the thread whose tries were aborted, or ``pauses`` and what was waited
for, separated by semicolons; a space, and nanoseconds. What is not seen has no line: without a log
a program shows neither.
"""

from collections.abc import Iterator

from gilscope.model.transactions import StmRecording, StmTotals
from gilscope.text.printable import printable

__all__ = ["render"]

_OTHERS = "[threads not told apart]"


def render(*recordings: StmRecording, names_process: bool = False) -> str:
    """Return one line a loss with its nanoseconds, sorted; empty where nothing was lost.

    Where it *names_process*, that is a level of its own below ``aborts`` and ``pauses``.
    """
    sums: dict[str, int] = {}
    for recording in recordings:
        process = recording.observation.process
        below = (f"{process.name}, pid {process.pid}",) if names_process else ()
        for root, name, lost_ns in _losses(recording.observation.totals):
            stack = ";".join(map(_plain, (root, *below, name)))
            sums[stack] = sums.get(stack, 0) + lost_ns
    return "".join(f"{stack} {ns}\n" for stack, ns in sorted(sums.items()) if ns)


def _losses(totals: StmTotals) -> Iterator[tuple[str, str, int]]:
    """Yield where each loss stands, and nanoseconds."""
    for kind, tally in (totals.waits or {}).items():
        yield "pauses", kind, tally.ns
    if totals.aborted is None:
        return
    left_ns = totals.aborted.sum_ns
    for thread in totals.threads:
        told_ns = min(left_ns, thread.aborted.ns)
        yield "aborts", thread.name or f"thread {thread.tid}", told_ns
        left_ns -= told_ns
    yield "aborts", _OTHERS, left_ns


def _plain(name: str) -> str:
    return printable(name).replace(";", ":")
