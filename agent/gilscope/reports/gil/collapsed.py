"""The waits of a recording as collapsed stacks, which flame graphs are drawn from.

One line a stack: the names of its levels, outermost first and separated by semicolons, a space, and
nanoseconds. Every wait is in there twice, below ``waiters`` at the place that waited and below
``holders`` at the one that it waited for, so each of the two adds up to all time lost. Nanoseconds,
because they add up without rounding.
"""

from collections.abc import Iterator

from gilscope.model.gil import Recording
from gilscope.model.stack import Stack
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.flame_levels import ENDS, edges_by_process, levels, summed
from gilscope.text.printable import printable

__all__ = ["render"]


def render(*recordings: Recording) -> str:
    """Return one line a stack with its nanoseconds, sorted; empty where nothing was lost.

    Of several recordings, the process is a level of its own below ``waiters`` and ``holders``.
    """
    names = SiteNames()
    lines = summed(
        (";".join(map(_plain, (root, *process, *_names(end(edge), names)))), edge.lost.ns)
        for root, end in ENDS.items()
        for process, edge in edges_by_process(recordings)
    )
    return "".join(f"{stack} {ns}\n" for stack, ns in sorted(lines))


def _names(stack: Stack, names: SiteNames) -> Iterator[str]:
    for level in levels(stack):
        yield level if isinstance(level, str) else names.site(level)


def _plain(name: str) -> str:
    return printable(name).replace(";", ":")
