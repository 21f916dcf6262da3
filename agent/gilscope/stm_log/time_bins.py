"""Spreads counts over time onto the cells of a line, and adds up lines of different scales."""

from collections.abc import Sequence

from gilscope.model.stm_log import BINS, OverTime

__all__ = ["add_up", "cells_of"]


def cells_of(over_time: OverTime, begin_ns: int, span_ns: int, cells: int) -> list[int]:
    """Return the counts in *cells* equal parts of the time from *begin_ns* on.

    What lies outside counts in the first or the last of them. Each step counts where its middle
    is, unless there are just as many steps as cells.
    """
    if len(over_time.counts) == cells:
        return list(over_time.counts)
    if span_ns <= 0:
        return [sum(over_time.counts)] + [0] * (cells - 1)
    return _spread(over_time, begin_ns, span_ns, cells)


def add_up(lines: Sequence[OverTime]) -> OverTime:
    """Return all *lines* in one, whose steps are as long as the longest, or longer by powers of 2.

    Raises ValueError where there are none.
    """
    begin_ns = min(line.begin_ns for line in lines)
    end_ns = max(_end_ns(line) for line in lines)
    step_ns = max(1, *(line.step_ns for line in lines))
    while step_ns * BINS < end_ns - begin_ns:
        step_ns *= 2
    spread = (_spread(line, begin_ns, step_ns * BINS, BINS) for line in lines)
    return OverTime(begin_ns, step_ns, tuple(map(sum, zip(*spread, strict=True))))


def _spread(line: OverTime, begin_ns: int, whole_ns: int, cells: int) -> list[int]:
    found = [0] * cells
    for number, count in enumerate(line.counts):
        if count:
            middle_ns = line.begin_ns + number * line.step_ns + line.step_ns // 2
            cell = (middle_ns - begin_ns) * cells // whole_ns
            found[min(max(cell, 0), cells - 1)] += count
    return found


def _end_ns(line: OverTime) -> int:
    used = [number for number, count in enumerate(line.counts) if count]
    return line.begin_ns + (used[-1] + 1 if used else 0) * line.step_ns
