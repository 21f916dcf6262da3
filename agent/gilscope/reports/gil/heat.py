"""What each line of the costliest functions has cost those who waited meanwhile."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gilscope.model.application import Application
from gilscope.model.gil import Edge, Tally
from gilscope.model.stack import Frame
from gilscope.naming.application import application_frame, is_module
from gilscope.values import dataclass

__all__ = ["Heat", "hottest"]

_MOST_FUNCTIONS = 5
_LEAST_SHARE = 0.01
_MOST_LINES = 12
"""Of one function; the hottest ones."""
_AROUND = 2

_Function = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Heat:
    """One function of the application, and what was lost while a holder stood in it."""

    frame: Frame
    """Of the line that cost the most."""
    lost: Tally
    others: Tally
    """What of that was lost by threads that were not in the same function themselves."""
    by_line: Mapping[int, Tally]
    """While the holder was in that line, or in what it called."""

    @property
    def is_module(self) -> bool:
        """Whether it is no function, and so has no end before that of its file."""
        return is_module(self.frame)

    @property
    def shown_lines(self) -> tuple[int, ...]:
        """The numbers of the function's first line, and of those around its hottest ones."""
        hottest = sorted(self.by_line, key=lambda line: -self.by_line[line].ns)[:_MOST_LINES]
        first = self.frame.first_line
        around = {
            near
            for line in hottest
            for near in range(line - _AROUND, line + _AROUND + 1)
            if near >= first or near in self.by_line
        }
        return tuple(sorted(around | {first}))


def hottest(edges: Iterable[Edge], application: Application) -> tuple[Heat, ...]:
    """Return the functions of *application* behind whose holds the most time was lost.

    At most five, each with a hundredth of all that *edges* have lost or more.
    """
    by_function: dict[_Function, list[tuple[Frame, Edge]]] = defaultdict(list)
    whole_ns = 0
    for edge in edges:
        whole_ns += edge.lost.ns
        frame = application_frame(edge.holder, application)
        if frame is not None and frame.line is not None:
            by_function[_function(frame)].append((frame, edge))
    heats = [_heat(behind, application) for behind in by_function.values()]
    heats.sort(key=lambda heat: -heat.lost.ns)
    return tuple(
        heat for heat in heats[:_MOST_FUNCTIONS] if heat.lost.ns >= _LEAST_SHARE * whole_ns
    )


def _heat(behind: Sequence[tuple[Frame, Edge]], application: Application) -> Heat:
    lines: dict[Frame, Tally] = defaultdict(Tally)
    others = Tally()
    for frame, edge in behind:
        lines[frame] += edge.lost
        waiter = application_frame(edge.waiter, application)
        if waiter is None or _function(waiter) != _function(frame):
            others += edge.lost
    return Heat(
        max(lines, key=lambda frame: lines[frame].ns),
        sum(lines.values(), start=Tally()),
        others,
        {frame.line: lost for frame, lost in lines.items() if frame.line is not None},
    )


def _function(frame: Frame) -> _Function:
    return frame.function, frame.file, frame.first_line
