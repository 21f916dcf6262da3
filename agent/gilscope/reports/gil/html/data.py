"""What the script of the HTML report works on: stacks and edges, each text once."""

from collections.abc import Mapping, Sequence
from typing import Any

from gilscope.model.application import Application
from gilscope.model.gil import ProcessTotals
from gilscope.model.stack import Frame, Stack, StackState
from gilscope.naming.application import is_of_application
from gilscope.naming.origins import Origin, origin_of
from gilscope.naming.places import IN_WORDS, SiteNames
from gilscope.reports.gil.html.pairs import Pair
from gilscope.reports.html.markup import clean

__all__ = ["report_data"]


def report_data(
    totals: ProcessTotals,
    application: Application,
    sources: Mapping[tuple[str, int], str],
    pairs: Sequence[Pair],
    names: SiteNames,
) -> dict[str, Any]:
    """Return the edges of *totals* as plain values; times are in nanoseconds.

    Everything names others by their positions. An edge is [waiter's stack, holder's stack, time,
    times], a stack is [state or "", frames with the innermost first], a file [short path, path]
    and a frame [function, file, line, `Origin`, source line or null].
    """
    table = _Stacks(application, sources, names)
    edges = [
        [table.position(edge.waiter), table.position(edge.holder), edge.lost.ns, edge.lost.count]
        for edge in totals.edges
    ]
    return {
        "words": {state.value: words for state, words in IN_WORDS.items()},
        "files": table.files,
        "frames": table.frames,
        "stacks": table.stacks,
        "edges": edges,
        "pairs": [list(pair.edges) for pair in pairs],
    }


class _Stacks:
    """Numbers stacks, frames and files in the order in which they come."""

    def __init__(
        self,
        application: Application,
        sources: Mapping[tuple[str, int], str],
        names: SiteNames,
    ) -> None:
        self.files: list[list[str]] = []
        self.frames: list[list[Any]] = []
        self.stacks: list[list[Any]] = []
        self._application = application
        self._sources = sources
        self._names = names
        self._file_positions: dict[str, int] = {}
        self._frame_positions: dict[Frame, int] = {}
        self._stack_positions: dict[Stack, int] = {}

    def position(self, stack: Stack) -> int:
        """Return the position of *stack* in `stacks`."""
        known = self._stack_positions.get(stack)
        if known is None:
            known = self._stack_positions[stack] = len(self.stacks)
            frames = [self._frame(frame) for frame in stack.frames]
            state = "" if stack.state is StackState.WHOLE else stack.state.value
            self.stacks.append([state, frames])
        return known

    def _frame(self, frame: Frame) -> int:
        known = self._frame_positions.get(frame)
        if known is None:
            known = self._frame_positions[frame] = len(self.frames)
            line = frame.first_line if frame.line is None else frame.line
            source = self._sources.get((frame.file, line))
            self.frames.append(
                [
                    clean(frame.function),
                    self._file(frame.file),
                    line,
                    int(self._origin(frame)),
                    None if source is None else clean(source),
                ]
            )
        return known

    def _origin(self, frame: Frame) -> Origin:
        if not self._application.is_said:
            return origin_of(frame)
        if is_of_application(frame, self._application):
            return Origin.APPLICATION
        return Origin.BOOTSTRAP if origin_of(frame) is Origin.BOOTSTRAP else Origin.LIBRARY

    def _file(self, file: str) -> int:
        known = self._file_positions.get(file)
        if known is None:
            known = self._file_positions[file] = len(self.files)
            self.files.append([clean(self._names.path(file)), clean(file)])
        return known
