"""What transactions have lost as collapsed stacks, which flame graphs are drawn from.

One line each: ``aborts`` and the thread whose tries were aborted, or ``pauses`` and what was waited
for, separated by semicolons; a space, and nanoseconds. What is not seen has no line: without a log
a program shows neither.
"""

from gilscope.model.transactions import StmRecording
from gilscope.reports.transactions.losses import losses
from gilscope.text.printable import printable

__all__ = ["render"]


def render(*recordings: StmRecording, names_process: bool = False) -> str:
    """Return one line a loss with its nanoseconds, sorted; empty where nothing was lost.

    Where it *names_process*, that is a level of its own below ``aborts`` and ``pauses``.
    """
    sums: dict[str, int] = {}
    for recording in recordings:
        process = recording.observation.process
        below = (f"{process.name}, pid {process.pid}",) if names_process else ()
        for loss in losses(recording.observation.totals):
            stack = ";".join(map(_plain, (loss.root, *below, loss.name)))
            sums[stack] = sums.get(stack, 0) + loss.ns
    return "".join(f"{stack} {ns}\n" for stack, ns in sorted(sums.items()) if ns)


def _plain(name: str) -> str:
    return printable(name).replace(";", ":")
