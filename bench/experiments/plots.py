"""Draws lines and points over an axis as SVG, readable on light and on dark pages.

The colours are those of Okabe and Ito, which people with any kind of colour vision tell apart;
each series has a mark of its own as well. The sources' figures are hollow and dashed.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from bench.svg import ticks

__all__ = ["Axis", "Lines", "Mark", "Point", "Series", "draw_lines"]

_WIDTH, _HEIGHT = 860, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 600, 76, 352
_MARGIN, _LEGEND, _LEGEND_ROW = 24, 622, 38
_CHARACTER = 6.6
"""Mean width in this font."""
_MARK_SIZE = 4.5
_LARGE, _SMALL = 1e5, 1e-3
_COLOURS = 6
_MARKS = 4

_STYLE = """
text { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.page { fill: #ffffff; stroke: #d1d9e0 }
.title { font-size: 16px; font-weight: 600 }
.muted, .tick { fill: #59636e } .tick { font-size: 11px }
.grid { stroke: #e4e8ec } .axis { stroke: #59636e }
.mark { stroke: #59636e; stroke-dasharray: 2 3 }
.line { fill: none; stroke-width: 2 } .source { stroke-dasharray: 6 4 }
.c0 { stroke: #0072b2; color: #0072b2 } .c1 { stroke: #d55e00; color: #d55e00 }
.c2 { stroke: #009e73; color: #009e73 } .c3 { stroke: #cc79a7; color: #cc79a7 }
.c4 { stroke: #b8860b; color: #b8860b } .c5 { stroke: #56b4e9; color: #56b4e9 }
.full { fill: currentColor } .hollow { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .page { fill: #0d1117; stroke: #30363d }
  .muted, .tick { fill: #9198a1 }
  .grid { stroke: #262c36 } .axis { stroke: #9198a1 }
  .mark { stroke: #9198a1 }
  .c0 { stroke: #4ea3dd; color: #4ea3dd } .c4 { stroke: #e6b422; color: #e6b422 }
  .hollow { fill: #0d1117 }
}
"""


@dataclass(frozen=True, slots=True)
class Axis:
    """A quantity with its unit."""

    title: str
    is_log: bool = False
    labels: Sequence[tuple[float, str]] = ()
    """Where ticks stand and what they say; none: round numbers."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value and, where it was measured more than once, its range."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one kind."""

    title: str
    points: Sequence[Point]
    is_source: bool = False
    """Figures of the source, not of this machine."""
    has_line: bool = True


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across the picture at a value of the y axis."""

    title: str
    y: float


@dataclass(frozen=True, slots=True)
class Lines:
    """A picture."""

    title: str
    subtitle: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    marks: Sequence[Mark] = ()


@dataclass(frozen=True, slots=True)
class _Scale:
    at: Sequence[tuple[float, str]]
    start: float
    end: float
    is_log: bool

    def place(self, value: float) -> float:
        low, high = self._of(self.at[0][0]), self._of(self.at[-1][0])
        share = (self._of(max(value, self.at[0][0]) if self.is_log else value) - low) / (high - low)
        return self.start + (self.end - self.start) * share

    def _of(self, value: float) -> float:
        return math.log10(value) if self.is_log else value


def draw_lines(lines: Lines) -> str:
    """Return the picture as an SVG document; values on a logarithmic axis are above 0."""
    points = [point for each in lines.series for point in each.points]
    xs = [point.x for point in points]
    ys = [y for p in points for y in (p.y, p.low, p.high) if y is not None]
    ys += [mark.y for mark in lines.marks]
    x, y = _scale(lines.x, xs, _LEFT, _RIGHT), _scale(lines.y, ys, _BOTTOM, _TOP)
    body = [*_head(lines), *_axes(lines, x, y)]
    for mark in lines.marks:
        at = y.place(mark.y)
        body.append(_line("mark", _LEFT, at, _RIGHT, at))
        body.append(_text(_RIGHT - 4, at - 4, mark.title, "tick", "end"))
    for number, series in enumerate(lines.series):
        body += _series(series, number, x, y)
    return "\n".join([*body, "</svg>\n"])


def _head(lines: Lines) -> Iterator[str]:
    parts = [part for series in lines.series for part in _halves(series.title)]
    longest = max(map(len, parts), default=0)
    width = max(_WIDTH, round(_LEGEND + 30 + _MARGIN + _CHARACTER * longest))
    size = f'width="{width}" height="{_HEIGHT}" viewBox="0 0 {width} {_HEIGHT}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    yield f"<title>{escape(lines.title)}</title>"
    yield f"<style>{_STYLE}</style>"
    box = f'x="0.5" y="0.5" width="{width - 1}" height="{_HEIGHT - 1}" rx="6"'
    yield f'<rect class="page" {box}/>'
    yield _text(_MARGIN, 30, lines.title, "title")
    yield _text(_MARGIN, 50, lines.subtitle, "muted")


def _axes(lines: Lines, x: _Scale, y: _Scale) -> Iterator[str]:
    for value, label in y.at:
        yield _line("grid", _LEFT, y.place(value), _RIGHT, y.place(value))
        yield _text(_LEFT - 8, y.place(value) + 4, label, "tick", "end")
    for value, label in x.at:
        yield _line("axis", x.place(value), _BOTTOM, x.place(value), _BOTTOM + 5)
        yield _text(x.place(value), _BOTTOM + 19, label, "tick", "middle")
    yield _line("axis", _LEFT, _BOTTOM, _RIGHT, _BOTTOM)
    yield _text((_LEFT + _RIGHT) / 2, _BOTTOM + 42, lines.x.title, "muted", "middle")
    yield _text(_LEFT, _TOP - 9, lines.y.title, "muted", "start")


def _series(series: Series, number: int, x: _Scale, y: _Scale) -> Iterator[str]:
    colour = f"c{number % _COLOURS}"
    places = [(x.place(point.x), y.place(point.y), point) for point in series.points]
    source = " source" if series.is_source else ""
    if series.has_line and len(places) > 1:
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top, _ in places)
        yield f'<polyline class="line {colour}{source}" points="{path}"/>'
    for left, top, point in places:
        if point.low is not None and point.high is not None:
            yield _line(colour, left, y.place(point.low), left, y.place(point.high))
        if series.has_line is False or len(places) <= _LARGE_SERIES:
            yield _mark(number, left, top, f"{colour} {'hollow' if source else 'full'}")
    row = _TOP + 10 + _LEGEND_ROW * number
    yield _line(f"line {colour}{source}", _LEGEND, row, _LEGEND + 22, row)
    yield _mark(number, _LEGEND + 11, row, f"{colour} {'hollow' if source else 'full'}")
    for line, part in enumerate(_halves(series.title)):
        yield _text(_LEGEND + 30, row + 4 + 15 * line, part)


_LARGE_SERIES = 40
"""Longer ones are lines alone."""
_LONGEST_LABEL = 26


def _halves(title: str) -> list[str]:
    if len(title) <= _LONGEST_LABEL:
        return [title]
    at = title.rfind(" ", 0, _LONGEST_LABEL)
    return [title[:at], title[at + 1 :]] if at > 0 else [title]


def _mark(number: int, x: float, y: float, kind: str) -> str:
    size = _MARK_SIZE
    if number % _MARKS == 0:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'
    if number % _MARKS == 1:
        box = f'x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size}" height="{2 * size}"'
        return f'<rect class="{kind}" {box}/>'
    path = " ".join(
        f"{x + right * size:.1f},{y + down * size:.1f}" for right, down in _CORNERS[number % 2]
    )
    return f'<polygon class="{kind}" points="{path}"/>'


_CORNERS = (
    ((0, -1.2), (1.2, 1), (-1.2, 1)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
)
"""Of a triangle and of a diamond."""


def _scale(axis: Axis, values: Sequence[float], start: float, end: float) -> _Scale:
    if axis.labels:
        at = list(axis.labels)
    elif axis.is_log:
        low = math.floor(math.log10(min(values)))
        high = max(math.ceil(math.log10(max(values))), low + 1)
        at = [(10.0**power, _shown(10.0**power)) for power in range(low, high + 1)]
    else:
        at = [(each, _shown(each)) for each in ticks(min(0.0, *values), max(values))]
    return _Scale(at, start, end, axis.is_log)


def _shown(value: float) -> str:
    value = round(value, 9)
    if value and not _SMALL <= abs(value) < _LARGE:
        return f"{value:.0e}"
    return f"{value:g}"


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    extra = f' class="{kind}"' if kind else ""
    extra += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{extra}>{escape(text)}</text>'
