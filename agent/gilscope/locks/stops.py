"""Turns what the kernel's tables hold of stops of the world into what reports show."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from gilscope.locks.totals import RawLocks
from gilscope.model.locks import StopCause, WorldStops
from gilscope.model.stack import UNKNOWN_STACK, Stack

__all__ = ["stops_of"]


@dataclass(slots=True)
class _Sums:
    stops: int = 0
    stopping_ns: int = 0
    standing_ns: int = 0
    longest_ns: int = 0

    def add(self, stops: int, stopping_ns: int, standing_ns: int, longest_ns: int) -> None:
        self.stops += stops
        self.stopping_ns += stopping_ns
        self.standing_ns += standing_ns
        self.longest_ns = max(self.longest_ns, longest_ns)


def stops_of(
    raw: RawLocks, stacks: Mapping[int, Stack], *, has_flights: bool = True
) -> tuple[WorldStops, ...]:
    """Return the stops of *raw* by place and cause, those that took longest first.

    *stacks* are by their ids. Where it *has_flights*, a stop counts as well that has been asked for
    and is not known to be over: up to where the asking thread last slept for it.
    """
    sums: defaultdict[tuple[StopCause, Stack], _Sums] = defaultdict(_Sums)
    for key, record in raw.stops:
        sums[_cause(key["is_collection"]), stacks.get(key["stack"], UNKNOWN_STACK)].add(
            record["stops"], record["stopping_ns"], record["standing_ns"], record["longest_ns"]
        )
    for thread in raw.threads.values() if has_flights else ():
        if not thread["asked_ns"]:
            continue
        stopping_ns = max(0, thread["stands_ns"] - thread["asked_ns"])
        stack = stacks.get(thread["stop_stack"], UNKNOWN_STACK)
        sums[_cause(thread["stop_is_collection"]), stack].add(1, stopping_ns, 0, stopping_ns)
    stops = [
        WorldStops(cause, stack, each.stops, each.stopping_ns, each.standing_ns, each.longest_ns)
        for (cause, stack), each in sums.items()
    ]
    return tuple(sorted(stops, key=lambda each: -each.ns))


def _cause(is_collection: int) -> StopCause:
    return StopCause.COLLECTION if is_collection else StopCause.OTHER
