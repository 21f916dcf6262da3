"""Rolls up pairs of places that differ only in what one common caller has called."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from gilscope.model.application import Application
from gilscope.model.gil import Edge
from gilscope.model.stack import Frame, Stack
from gilscope.naming.application import is_of_application
from gilscope.values import dataclass

__all__ = ["CallerPair", "caller_pairs"]

_NEARLY_ALL = 0.9
"""Of the time of the threads that begin in one function: it is spent below their common caller."""
_LEAST_PAIRS = 3
"""Of places: fewer are read as fast as one more line."""
_LEAST_SHARE = 0.01

_Function = tuple[str, str, int]
_Path = tuple[_Function, ...]


@dataclass(frozen=True, slots=True)
class CallerPair:
    """What was lost by threads below one function while the holder was below another one."""

    waiter: Frame
    holder: Frame
    lost_ns: int
    pairs: int
    """Of functions in which they stood."""


def caller_pairs(edges: Iterable[Edge], application: Application) -> tuple[CallerPair, ...]:
    """Return the pairs of common callers that stand for three pairs of places or more.

    The costliest first, each with a hundredth of all that *edges* have lost or more. The common
    caller of threads that begin in the same function of *application* is the innermost function
    that is on nearly all of their stacks, by time.
    """
    edges = tuple(edges)
    spent: Counter[_Path] = Counter()
    for edge in edges:
        for end in (edge.waiter, edge.holder):
            spent[_path(end, application)] += edge.lost.ns
    callers = _common(spent)
    sums: Counter[tuple[_Function, _Function]] = Counter()
    places: dict[tuple[_Function, _Function], set[tuple[_Function, _Function]]] = defaultdict(set)
    for edge in edges:
        waiter, holder = (_path(end, application) for end in (edge.waiter, edge.holder))
        if waiter and holder:
            ends = _caller(waiter, callers), _caller(holder, callers)
            sums[ends] += edge.lost.ns
            places[ends].add((waiter[-1], holder[-1]))
    least_ns = _LEAST_SHARE * sum(edge.lost.ns for edge in edges)
    return tuple(
        CallerPair(Frame(*waiter), Frame(*holder), ns, len(places[waiter, holder]))
        for (waiter, holder), ns in sums.most_common()
        if ns >= least_ns and len(places[waiter, holder]) >= _LEAST_PAIRS
    )


def _path(stack: Stack, application: Application) -> _Path:
    """Return the functions of *stack* from the outermost one of *application* inwards."""
    frames = stack.frames[::-1]
    own = [at for at, frame in enumerate(frames) if is_of_application(frame, application)]
    inwards = frames[own[0] :] if own else frames[-1:]
    return tuple((frame.function, frame.file, frame.first_line) for frame in inwards)


def _common(spent: Mapping[_Path, int]) -> Mapping[_Function, _Path]:
    """Return the path to the common caller by the function that a path begins with."""
    by_entry: dict[_Function, list[tuple[_Path, int]]] = defaultdict(list)
    for path, ns in spent.items():
        if path:
            by_entry[path[0]].append((path, ns))
    return {entry: _heaviest(paths) for entry, paths in by_entry.items()}


def _heaviest(paths: list[tuple[_Path, int]]) -> _Path:
    enough_ns = _NEARLY_ALL * sum(ns for _, ns in paths)
    depth, common = 1, paths[0][0][:1]
    while True:
        deeper: Counter[_Path] = Counter()
        for path, ns in paths:
            if len(path) > depth:
                deeper[path[: depth + 1]] += ns
        best = max(deeper, key=deeper.__getitem__, default=None)
        if best is None or deeper[best] < enough_ns:
            return common
        depth, common = depth + 1, best


def _caller(path: _Path, callers: Mapping[_Function, _Path]) -> _Function:
    common = callers[path[0]]
    return common[-1] if path[: len(common)] == common else path[-1]
