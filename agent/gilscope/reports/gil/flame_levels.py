"""What the formats for flame graphs have in common: both ends of the waits, outermost first."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from gilscope.model.gil import Edge, Recording
from gilscope.model.stack import Frame, Stack, StackState
from gilscope.naming.places import IN_WORDS

__all__ = ["ENDS", "Level", "edges_by_process", "levels", "summed"]

_Key = TypeVar("_Key", bound=Hashable)

Level = Frame | str
"""One level of a flame graph: a frame, or in words why there is none."""

ENDS: dict[str, Callable[[Edge], Stack]] = {
    "waiters": lambda edge: edge.waiter,
    "holders": lambda edge: edge.holder,
}
"""Every wait is drawn at both of its ends."""


def edges_by_process(recordings: Sequence[Recording]) -> Iterator[tuple[tuple[str, ...], Edge]]:
    """Yield the edges of all *recordings*, each below a level with its process.

    Of one process alone there is no such level.
    """
    for recording in recordings:
        process = recording.observation.process
        below = (f"{process.name}, pid {process.pid}",) if len(recordings) > 1 else ()
        for edge in recording.observation.totals.edges:
            yield below, edge


def levels(stack: Stack) -> tuple[Level, ...]:
    """Return *stack*, outermost first; brackets stand where it has no frame, or lacks some."""
    frames: tuple[Level, ...] = stack.frames[::-1]
    if stack.state is StackState.WHOLE:
        return frames
    missing = f"[{IN_WORDS[stack.state]}]"
    return (missing, *frames) if stack.state is StackState.CUT else (*frames, missing)


def summed(weights: Iterable[tuple[_Key, int]]) -> list[tuple[_Key, int]]:
    """Return *weights* added up by key, without those that are zero, the heaviest first.

    Those of the same weight stay in the order in which their keys came.
    """
    sums: Counter[_Key] = Counter()
    for key, weight in weights:
        sums[key] += weight
    return [(key, weight) for key, weight in sums.most_common() if weight]
