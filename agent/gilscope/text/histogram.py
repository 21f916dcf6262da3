"""Histograms drawn in a terminal."""

from collections.abc import Iterator

from gilscope.model.histogram import Histogram
from gilscope.text.units import short_duration

__all__ = ["bars"]

_WIDTH = 40
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bars(histogram: Histogram) -> Iterator[str]:
    """Yield a line for each slot between the first and the last that is used.

    A line gives the slot's bounds (each twice the one before), the count, and a bar whose length
    is the count's share of the largest.
    """
    used = [slot for slot, count in enumerate(histogram.slots) if count]
    if not used:
        return
    largest = max(histogram.slots)
    for slot in range(used[0], used[-1] + 1):
        count = histogram.slots[slot]
        lower = short_duration(1 << (slot - 1)) if slot else "0 ns"
        upper = "longer" if slot == len(histogram.slots) - 1 else short_duration(1 << slot)
        yield f"  {lower:>8} .. {upper:<8} {count:>8}  {_bar(count, largest)}"


def _bar(count: int, largest: int) -> str:
    eighths = -(-count * _WIDTH * 8 // largest)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")) if count else ""
