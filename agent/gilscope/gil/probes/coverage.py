"""When holds count, and how much time that has covered."""

from typing import Final, NamedTuple

from gilscope.values import dataclass

__all__ = ["NEVER_NS", "NEVER_OPEN", "Bounds", "Coverage"]

NEVER_NS: Final = (1 << 64) - 1


class Coverage(NamedTuple):
    """How much of the time windows have covered, as far as can be told without the kernel."""

    covered_ns: int
    """By windows that are over."""
    open_since_ns: int
    """CLOCK_MONOTONIC; 2**64 - 1: no window is open."""


NEVER_OPEN: Final = Coverage(0, NEVER_NS)


@dataclass(frozen=True, slots=True)
class Bounds:
    """From when to when holds count, and until when they would if nothing came between."""

    from_ns: int
    until_ns: int

    def part_ns(self, since_ns: int, now_ns: int) -> int:
        """Return how much of the time from *since_ns* to *now_ns* lies inside."""
        return max(0, min(now_ns, self.until_ns) - max(since_ns, self.from_ns))
