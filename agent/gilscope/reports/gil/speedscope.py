"""The waits of a recording in the file format of speedscope, a viewer of flame graphs.

Two profiles: one weighs the places that waited, the other those that were waited for, each with all
the time lost. The outermost level of both is the kind of the wait.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

import gilscope
from gilscope.model.gil import Edge, Recording
from gilscope.model.kinds import Kind
from gilscope.model.stack import Stack
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.flame_levels import ENDS, Level, levels, summed
from gilscope.text.printable import printable
from gilscope.text.units import seconds

__all__ = ["render"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def render(recording: Recording) -> str:
    """Return the file: JSON in one line, with weights in nanoseconds."""
    observation = recording.observation
    process, edges = observation.process, observation.totals.edges
    frames = _Frames()
    profiles = [_profile(name, edges, end, frames) for name, end in ENDS.items()]
    outcome = (
        f"nothing is reported, because {observation.invalid}"
        if observation.invalid
        else f"{seconds(recording.duration_ns)} in {recording.mode} mode"
    )
    file = {
        "$schema": _SCHEMA,
        "name": printable(f"{process.name}, pid {process.pid}: {outcome}"),
        "exporter": f"gilscope {gilscope.__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames.described},
        "profiles": profiles,
    }
    return json.dumps(file, separators=(",", ":")) + "\n"


class _Frames:
    """The list of frames that all profiles share."""

    def __init__(self) -> None:
        self.described: list[dict[str, Any]] = []
        self._indexes: dict[tuple[Any, ...], int] = {}
        self._names = SiteNames()

    def index(self, level: Level | Kind) -> int:
        """Return the place of *level* in the list, at the end of which it may be put."""
        described = self._describe(level)
        key = tuple(described.values())
        if key not in self._indexes:
            self._indexes[key] = len(self.described)
            self.described.append(described)
        return self._indexes[key]

    def _describe(self, level: Level | Kind) -> dict[str, Any]:
        if isinstance(level, Kind):
            return {"name": level.value}
        if isinstance(level, str):
            return {"name": level}
        return {
            "name": printable(level.function),
            "file": printable(self._names.path(level.file)),
            "line": level.first_line if level.line is None else level.line,
        }


def _profile(
    name: str, edges: Iterable[Edge], end: Callable[[Edge], Stack], frames: _Frames
) -> dict[str, Any]:
    samples = summed(
        (
            tuple(frames.index(level) for level in (edge.kind, *levels(end(edge)))),
            edge.lost.ns,
        )
        for edge in edges
    )
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(ns for _, ns in samples),
        "samples": [list(stack) for stack, _ in samples],
        "weights": [ns for _, ns in samples],
    }
