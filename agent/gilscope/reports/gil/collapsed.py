"""The waits of a recording as collapsed stacks, which flame graphs are drawn from.

One line a stack: the names of its levels, outermost first and separated by semicolons, a space, and
nanoseconds. Every wait is in there twice, below ``waiters`` at the place that waited and below
``holders`` at the one that it waited for, so each of the two adds up to all time lost. Nanoseconds,
because they add up without rounding.
"""

from gilscope.model.gil import Recording
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.flame_levels import ENDS, Level, levels, summed
from gilscope.text.printable import printable

__all__ = ["render"]


def render(recording: Recording) -> str:
    """Return one line a stack with its nanoseconds, sorted; empty where nothing was lost."""
    names = SiteNames()
    edges = recording.observation.totals.edges
    lines = summed(
        (";".join([root, *(_name(level, names) for level in levels(end(edge)))]), edge.lost.ns)
        for root, end in ENDS.items()
        for edge in edges
    )
    return "".join(f"{stack} {ns}\n" for stack, ns in sorted(lines))


def _name(level: Level, names: SiteNames) -> str:
    name = level if isinstance(level, str) else names.site(level)
    return printable(name).replace(";", ":")
