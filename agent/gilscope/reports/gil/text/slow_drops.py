"""What the text report says about code that was slow to drop the GIL."""

from collections.abc import Hashable, Iterable, Iterator

from gilscope.model.gil import Recording, SlowDrop, Tally
from gilscope.naming.places import place_of
from gilscope.reports.gil.text.stack import stack_lines
from gilscope.text.ansi import Paint
from gilscope.text.units import counted, seconds, short_duration
from gilscope.values import dataclass

__all__ = ["slow_drop_lines"]

_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Group:
    """SlowDrops that stood in the same function."""

    slow_drops: tuple[SlowDrop, ...]
    """The costliest first."""
    drop_latency: Tally
    longest_ns: int
    in_flight_ns: int


def slow_drop_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield where threads kept the GIL despite a drop request; nothing if none did."""
    groups = _groups(recording.observation.totals.slow_drops)
    if not groups:
        return
    yield paint.bold("Slow to drop the GIL")
    yield paint.dim(
        "Python code drops it within microseconds. What follows is code in C that keeps the GIL,"
    )
    yield paint.dim("or a thread that the machine had no CPU for.")
    yield paint.dim(
        "What helps: smaller pieces of work, C code that releases the GIL, another process."
    )
    for group in groups[:_MOST_SHOWN]:
        costliest, *others = group.slow_drops
        yield ""
        yield paint.bold(f"{seconds(group.drop_latency.ns)} of drop latency") + (
            f" ({group.drop_latency.count}x asked, "
            f"the longest for {short_duration(group.longest_ns)}{_still(group.in_flight_ns)})"
        )
        stacks = [slow_drop.holder for slow_drop in others]
        yield from stack_lines(costliest.holder, recording, paint, stacks)
    left = groups[_MOST_SHOWN:]
    if left:
        left_ns = sum(group.drop_latency.ns for group in left)
        places = counted(len(left), "more place")
        verb = "is" if len(left) == 1 else "are"
        yield ""
        yield f"{places} with {seconds(left_ns)} {verb} left out here; --format json has all."


def _still(in_flight_ns: int) -> str:
    return f", still unanswered after {short_duration(in_flight_ns)}" if in_flight_ns else ""


def _groups(slow_drops: Iterable[SlowDrop]) -> list[_Group]:
    members: dict[Hashable, list[SlowDrop]] = {}
    for slow_drop in slow_drops:
        members.setdefault(place_of(slow_drop.holder), []).append(slow_drop)
    groups = [
        _Group(
            tuple(sorted(group, key=lambda slow_drop: -slow_drop.drop_latency.ns)),
            sum((slow_drop.drop_latency for slow_drop in group), start=Tally()),
            max(slow_drop.longest_ns for slow_drop in group),
            max(slow_drop.in_flight_ns for slow_drop in group),
        )
        for group in members.values()
    ]
    return sorted(groups, key=lambda group: -group.drop_latency.ns)
