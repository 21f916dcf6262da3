"""Turns what the kernel's tables hold of stops of the world into what reports show."""

from collections import defaultdict
from collections.abc import Mapping

from gilscope.locks.totals import RawLocks
from gilscope.model.locks import StopCause, WorldStops
from gilscope.model.stack import UNKNOWN_STACK, Stack
from gilscope.values import dataclass

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


def stops_of(raw: RawLocks, stacks: Mapping[int, Stack]) -> tuple[WorldStops, ...]:
    """Return the stops of *raw* by place and cause, those that took longest first.

    *stacks* are by their ids.
    """
    sums: defaultdict[tuple[StopCause, Stack], _Sums] = defaultdict(_Sums)
    for key, record in raw.stops:
        cause = StopCause.COLLECTION if key["is_collection"] else StopCause.OTHER
        sums[cause, stacks.get(key["stack"], UNKNOWN_STACK)].add(
            record["stops"], record["stopping_ns"], record["standing_ns"], record["longest_ns"]
        )
    stops = [
        WorldStops(cause, stack, each.stops, each.stopping_ns, each.standing_ns, each.longest_ns)
        for (cause, stack), each in sums.items()
    ]
    return tuple(sorted(stops, key=lambda each: -each.ns))
