"""Histograms drawn in a terminal."""

from collections.abc import Iterator

from gilscope.model.histogram import OCTAVES, Histogram
from gilscope.text.units import short_duration

__all__ = ["bars"]

_WIDTH = 40
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bars(histogram: Histogram) -> Iterator[str]:
    """Yield a line with quantiles, and one for each octave between the first and the last used.

    A line gives its bounds (each twice the one before), the count, and a bar whose length
    is the count's share of the largest.
    """
    counts = histogram.octaves()
    used = [octave for octave, count in enumerate(counts) if count]
    if not used:
        return
    yield "  " + ", ".join(
        f"p{percent} ≈ {short_duration(histogram.quantile_ns(percent / 100) or 0)}"
        for percent in (50, 90, 99)
    )
    largest = max(counts)
    for octave in range(used[0], used[-1] + 1):
        count = counts[octave]
        lower = short_duration(1 << (octave - 1)) if octave else "0 ns"
        upper = "longer" if octave == OCTAVES - 1 else short_duration(1 << octave)
        yield f"  {lower:>8} .. {upper:<8} {count:>8}  {_bar(count, largest)}"


def _bar(count: int, largest: int) -> str:
    eighths = -(-count * _WIDTH * 8 // largest)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")) if count else ""
