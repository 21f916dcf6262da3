"""What has changed from one recording to another, for people: text, or Markdown for a summary."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gilscope.reports.markdown_table import table
from gilscope.text.printable import printable
from gilscope.text.units import NS_PER_S, short_duration, short_number
from gilscope.verdict.figures import Figures
from gilscope.verdict.limits import change_of

__all__ = ["MOST_PLACES", "markdown", "text"]

MOST_PLACES = 10
_LEAST = 0.005
"""Of a thread: who waits less, or keeps fewer waiting, before and after, is not shown."""
_HEAD = ("", "before", "after", "change")


class _Row(NamedTuple):
    name: str
    before: str
    after: str
    change: str


def text(before: Figures, after: Figures) -> str:
    """Return both side by side, with the places that have changed the most first."""
    lines = [
        *_aligned((_Row(*_HEAD), *_rows(before, after))),
        "",
        "Whose code kept the GIL, in threads kept waiting at any moment",
        *_aligned(_place_rows(before.places, after.places)),
        "",
        "Who waited, in threads waiting at any moment",
        *_aligned(_place_rows(before.roles, after.roles)),
    ]
    return "\n".join((*lines, ""))


def markdown(before: Figures, after: Figures) -> str:
    """Return the same as tables of Markdown."""
    return "\n".join(
        (
            *table(("GIL", *_HEAD[1:]), _rows(before, after)),
            "",
            *table(
                ("threads kept waiting by", *_HEAD[1:]), _place_rows(before.places, after.places)
            ),
            "",
            *table(("threads waiting in", *_HEAD[1:]), _place_rows(before.roles, after.roles)),
            "",
        )
    )


def _rows(before: Figures, after: Figures) -> Iterator[_Row]:
    yield _Row("duration", _time(before.duration_s), _time(after.duration_s), "")
    yield _row("threads waiting", before.waiting, after.waiting)
    yield _row("seconds lost per CPU second", before.waiting_per_cpu_s, after.waiting_per_cpu_s)
    yield _row("cores used", before.cores, after.cores)
    yield _row("convoy waits a second", before.convoys_per_s, after.convoys_per_s)
    yield _row("p50 of waits", before.wait_p50_s, after.wait_p50_s, is_time=True)
    yield _row("p99 of waits", before.wait_p99_s, after.wait_p99_s, is_time=True)
    yield _row("slow drops a second", before.slow_drops_per_s, after.slow_drops_per_s)
    yield _row("longest drop", before.longest_drop_s, after.longest_drop_s, is_time=True)


def _place_rows(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[_Row, ...]:
    places = {*before, *after}
    pairs = {place: (before.get(place, 0.0), after.get(place, 0.0)) for place in places}
    told = sorted(
        (place for place in places if max(pairs[place]) >= _LEAST),
        key=lambda place: (-abs(pairs[place][1] - pairs[place][0]), place),
    )
    rows = [_row(printable(place), *pairs[place]) for place in told[:MOST_PLACES]]
    rest = [pairs[place] for place in places.difference(told[:MOST_PLACES])]
    sums = sum(b for b, _ in rest), sum(a for _, a in rest)
    if max(sums) >= _LEAST:
        rows.append(_row("everything else", *sums))
    return tuple(rows) or (_Row("nobody, in either", "", "", ""),)


def _row(name: str, before: float | None, after: float | None, *, is_time: bool = False) -> _Row:
    shown = _time if is_time else _number
    return _Row(name, shown(before), shown(after), _change(change_of(before, after)))


def _number(value: float | None) -> str:
    return "unknown" if value is None else short_number(value) if value >= _LEAST else "0"


def _time(value: float | None) -> str:
    if value is None:
        return "none"
    return "longer" if math.isinf(value) else short_duration(round(value * NS_PER_S))


def _change(change: float | None) -> str:
    if change is None:
        return ""
    return "new" if math.isinf(change) else f"{100 * change:+.0f} %"


def _aligned(rows: Sequence[_Row]) -> Iterator[str]:
    names = max(len(row.name) for row in rows)
    widths = [_width(rows, at) for at in range(3)]
    for row in rows:
        cells = zip((row.before, row.after, row.change), widths, strict=True)
        line = "  ".join(cell.rjust(width) for cell, width in cells)
        yield f"  {row.name.ljust(names)}  {line}".rstrip()


def _width(rows: Sequence[_Row], at: int) -> int:
    return max(len((row.before, row.after, row.change)[at]) for row in rows)
