"""What the text report says about both ends of waits: who kept whom waiting, and where."""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from gilscope.model.gil import Edge, Recording, Tally
from gilscope.model.stack import StackState
from gilscope.naming.places import ENTERS_PYTHON, SiteNames, place_of
from gilscope.reports.gil.text.stack import stack_lines
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds
from gilscope.values import dataclass
from gilscope.verdict.callers import caller_pairs
from gilscope.verdict.estimates import about, are_shared_out

__all__ = ["edge_lines"]

_MOST_SHOWN = 10
_MOST_CALLERS = 3
_LEAST_SHARE = 0.01
"""What is less than that of the time lost would make nobody change a program."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Edges of one kind between the same two functions."""

    edges: tuple[Edge, ...]
    """The costliest first."""
    lost: Tally


def edge_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield who kept whom waiting, most time first; nothing where that was not observed."""
    totals = recording.observation.totals
    if not totals.edges:
        return
    noted_ns = sum(edge.lost.ns for edge in totals.edges)
    lost_ns = max(1, noted_ns, totals.wait_ns)
    mark = about(is_estimate=are_shared_out(totals))
    yield paint.bold("Who kept whom waiting")
    yield _known_share(totals.edges, lost_ns)
    yield from _caller_lines(recording, lost_ns, mark, paint)
    groups = _groups(totals.edges)
    shown = [
        group for group in groups[:_MOST_SHOWN] if group.lost.ns >= _LEAST_SHARE * lost_ns
    ] or groups[:1]
    for group in shown:
        yield ""
        yield from _group_lines(group, lost_ns, recording, paint, mark)
    yield from _left_out(groups[len(shown) :], lost_ns, mark)


def _known_share(edges: Iterable[Edge], lost_ns: int) -> str:
    known_ns = sum(edge.lost.ns for edge in edges if edge.waiter.is_known and edge.holder.is_known)
    return f"Both ends are known for {percent(known_ns / lost_ns)} of the time lost."


def _caller_lines(recording: Recording, lost_ns: int, mark: str, paint: Paint) -> Iterator[str]:
    pairs = caller_pairs(recording.observation.totals.edges, recording.application)
    if pairs:
        yield ""
        yield paint.bold("Rolled up by common caller")
    names = SiteNames()
    for pair in pairs[:_MOST_CALLERS]:
        lost, share = f"{mark}{seconds(pair.lost_ns)}", f"{mark}{percent(pair.lost_ns / lost_ns)}"
        waiter, holder = (printable(names.site(end)) for end in (pair.waiter, pair.holder))
        yield f"{lost:>10} {share:>6}  {waiter} behind {holder}, {pair.pairs} pairs of places"


def _groups(edges: Iterable[Edge]) -> list[_Group]:
    members: dict[Hashable, list[Edge]] = {}
    for edge in edges:
        # A pair without an end would say nothing; its time is in the share that is not known.
        if edge.waiter.is_known or edge.holder.is_known:
            key = (edge.kind, place_of(edge.waiter), place_of(edge.holder))
            members.setdefault(key, []).append(edge)
    groups = [
        _Group(
            tuple(sorted(group, key=lambda edge: -edge.lost.ns)),
            sum((edge.lost for edge in group), start=Tally()),
        )
        for group in members.values()
    ]
    return sorted(groups, key=lambda group: -group.lost.ns)


def _group_lines(
    group: _Group, lost_ns: int, recording: Recording, paint: Paint, mark: str
) -> Iterator[str]:
    costliest, *others = group.edges
    lost, times = f"{mark}{seconds(group.lost.ns)}", f"{mark}{group.lost.count}"
    yield (
        paint.bold(f"{lost} lost waiting ({times}x {costliest.kind.value})")
        + f", {mark}{percent(group.lost.ns / lost_ns)} of all"
    )
    waiters, holders = [edge.waiter for edge in others], [edge.holder for edge in others]
    yield from stack_lines(costliest.waiter, recording, paint, waiters)
    if costliest.waiter.state is StackState.NO_PYTHON:
        yield paint.dim(f"  {ENTERS_PYTHON}")
    yield paint.bold("held by")
    yield from stack_lines(costliest.holder, recording, paint, holders)
    if others:
        yield paint.dim(
            f"The costliest of {len(group.edges)} pairs of stacks, "
            f"with {mark}{seconds(costliest.lost.ns)}."
        )


def _left_out(groups: Sequence[_Group], lost_ns: int, mark: str) -> Iterator[str]:
    if not groups:
        return
    left_ns = sum(group.lost.ns for group in groups)
    pairs = counted(len(groups), "more pair")
    yield ""
    yield (
        f"{pairs} of places with {mark}{seconds(left_ns)}, "
        f"{mark}{percent(left_ns / lost_ns)} of all, "
        f"{'is' if len(groups) == 1 else 'are'} left out here; --format json has everything."
    )
