"""The waits of a recording in the file format of speedscope, a viewer of flame graphs.

Two profiles: one weighs the places that waited, the other those that were waited for, each with all
the time lost. The outermost level of both is the kind of the wait. Transactions have two of their
own: what aborted tries had run, by thread, and pauses by what they were for. Locks have one, below
what was waited for.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gilscope
from gilscope.model.gil import Edge, Recording
from gilscope.model.kinds import Kind
from gilscope.model.locks import LockRecording
from gilscope.model.stack import Stack
from gilscope.model.transactions import StmRecording
from gilscope.naming.lock_words import short_words
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.flame_levels import ENDS, Level, edges_by_process, levels, summed
from gilscope.reports.locks.losses import lost_waits
from gilscope.reports.transactions.losses import losses
from gilscope.text.printable import printable
from gilscope.text.units import seconds

__all__ = ["render"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def render(
    *recordings: Recording,
    transactions: Sequence[StmRecording] = (),
    locks: Sequence[LockRecording] = (),
) -> str:
    """Return the file: JSON in one line, with weights in nanoseconds.

    Of several recordings, the process is the outermost level.
    """
    frames = _Frames()
    profiles = []
    if recordings or not (transactions or locks):
        profiles = [_profile(name, recordings, end, frames) for name, end in ENDS.items()]
    if transactions:
        names_process = len(recordings) + len(transactions) > 1
        profiles += [
            _stm_profile(root, transactions, frames, names_process=names_process)
            for root in ("aborts", "pauses")
        ]
    if locks:
        profiles.append(_lock_profile(locks, frames, names_process=len(locks) > 1))
    file = {
        "$schema": _SCHEMA,
        "name": printable(_name([*recordings, *transactions], locks)),
        "exporter": f"gilscope {gilscope.__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames.described},
        "profiles": profiles,
    }
    return json.dumps(file, separators=(",", ":")) + "\n"


def _name(others: Sequence[Recording | StmRecording], locks: Sequence[LockRecording]) -> str:
    pids = {each.observation.process.pid for each in (*others, *locks)}
    if len(pids) != 1:
        return f"{len(pids)} processes"
    if not others:
        seen = locks[0].observation
        outcome = f"locks seen for {seconds(seen.observed_ns)}"
        return f"{seen.process.name}, pid {seen.process.pid}: {outcome}"
    recording = others[0]
    observation = recording.observation
    if isinstance(recording, StmRecording):
        outcome = f"transactions seen for {seconds(recording.observation.observed_ns)}"
    elif observation.invalid:
        outcome = f"nothing is reported, because {observation.invalid}"
    else:
        outcome = f"{seconds(recording.duration_ns)} in {recording.mode} mode"
    return f"{observation.process.name}, pid {observation.process.pid}: {outcome}"


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
            return {"name": printable(level)}
        return {
            "name": printable(level.function),
            "file": printable(self._names.path(level.file)),
            "line": level.first_line if level.line is None else level.line,
        }


def _profile(
    name: str, recordings: Sequence[Recording], end: Callable[[Edge], Stack], frames: _Frames
) -> dict[str, Any]:
    samples = summed(
        (
            tuple(frames.index(level) for level in (*process, edge.kind, *levels(end(edge)))),
            edge.lost.ns,
        )
        for process, edge in edges_by_process(recordings)
    )
    return _sampled(name, samples)


def _stm_profile(
    root: str, recordings: Sequence[StmRecording], frames: _Frames, *, names_process: bool
) -> dict[str, Any]:
    def weights() -> Iterator[tuple[tuple[int, ...], int]]:
        for recording in recordings:
            process = recording.observation.process
            below = (f"{process.name}, pid {process.pid}",) if names_process else ()
            for loss in losses(recording.observation.totals):
                if loss.root == root:
                    yield tuple(frames.index(level) for level in (*below, loss.name)), loss.ns

    return _sampled(root, summed(weights()))


def _lock_profile(
    recordings: Sequence[LockRecording], frames: _Frames, *, names_process: bool
) -> dict[str, Any]:
    def weights() -> Iterator[tuple[tuple[int, ...], int]]:
        for recording in recordings:
            process = recording.observation.process
            below = (f"{process.name}, pid {process.pid}",) if names_process else ()
            for wait in lost_waits(recording):
                stack = (*below, short_words(wait), *levels(wait.stack))
                yield tuple(frames.index(level) for level in stack), wait.wait_ns

    return _sampled("locks", summed(weights()))


def _sampled(name: str, samples: Sequence[tuple[tuple[int, ...], int]]) -> dict[str, Any]:
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(ns for _, ns in samples),
        "samples": [list(stack) for stack, _ in samples],
        "weights": [ns for _, ns in samples],
    }
