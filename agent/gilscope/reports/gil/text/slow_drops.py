"""What the text report says about code that did not let go of the GIL when it was asked to."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from gilscope.model.gil import Culprit, Recording, Tally
from gilscope.reports.gil.text.stack import place_of, stack_lines
from gilscope.text.ansi import Paint
from gilscope.text.units import seconds, short_duration

__all__ = ["culprit_lines"]

_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Group:
    """Culprits that stood in the same function."""

    culprits: tuple[Culprit, ...]
    """The dearest first."""
    drop_latency: Tally
    longest_ns: int


def culprit_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield where threads kept the GIL although they were asked for it; nothing if none did."""
    groups = _groups(recording.observation.totals.culprits)
    if not groups:
        return
    yield paint.bold("Who did not let go when asked")
    yield paint.dim(
        "Python code lets go within microseconds. What follows is code in C that keeps the GIL,"
    )
    yield paint.dim("or a thread that the machine had no CPU for.")
    yield paint.dim(
        "What helps: smaller pieces of work, C code that releases the GIL, another process."
    )
    for group in groups[:_MOST_SHOWN]:
        dearest, *others = group.culprits
        yield ""
        yield paint.bold(f"{seconds(group.drop_latency.ns)} until it let go") + (
            f" ({group.drop_latency.count}x asked, "
            f"the longest for {short_duration(group.longest_ns)})"
        )
        stacks = [culprit.holder for culprit in others]
        yield from stack_lines(dearest.holder, recording.sources, paint, stacks)
    left = groups[_MOST_SHOWN:]
    if left:
        left_ns = sum(group.drop_latency.ns for group in left)
        places = "1 more place" if len(left) == 1 else f"{len(left)} more places"
        verb = "is" if len(left) == 1 else "are"
        yield ""
        yield f"{places} with {seconds(left_ns)} {verb} left out here; --format json has all."


def _groups(culprits: Iterable[Culprit]) -> list[_Group]:
    members: dict[Hashable, list[Culprit]] = {}
    for culprit in culprits:
        members.setdefault(place_of(culprit.holder), []).append(culprit)
    groups = [
        _Group(
            tuple(sorted(group, key=lambda culprit: -culprit.drop_latency.ns)),
            sum((culprit.drop_latency for culprit in group), start=Tally()),
            max(culprit.longest_ns for culprit in group),
        )
        for group in members.values()
    ]
    return sorted(groups, key=lambda group: -group.drop_latency.ns)
