"""Draws horizontal bar charts as SVG, readable on light and on dark pages, without a library."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

__all__ = ["Bar", "Chart", "Group", "Kind", "draw", "ticks"]

Kind = Literal["ours", "peer", "noise"]

_LEFT = 280
"""Room for labels, unless one is longer."""
_BARS = 360
_VALUES = 384
"""From where bars begin."""
_RIGHT = 580
"""Likewise, to the edge."""
_CHARACTER = 6.6
"""Mean width in this font."""
_MARGIN = 24
_ROW = 24
_BAR = 12
_HEAD = 64
_GROUP_TITLE = 26
_AXIS = 26
_GAP = 14
_BASELINE = 4
_LARGE = 100
_MOST_TICKS = 6
_STEPS = (1, 2, 5, 10)

_STYLE = """
text { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.page { fill: #ffffff; stroke: #d1d9e0 }
.title { font-size: 16px; font-weight: 600 }
.group { font-weight: 600 }
.muted { fill: #59636e }
.tick { font-size: 11px; fill: #59636e }
.grid { stroke: #e4e8ec } .zero { stroke: #59636e }
.band { fill: #afb8c1; fill-opacity: 0.3 }
.mark { stroke: #59636e; stroke-dasharray: 4 3 }
.range { stroke: #1f2328; stroke-width: 1.2 }
.ours { fill: #2a9d78 } .peer { fill: #d9722b } .noise { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .page { fill: #0d1117; stroke: #30363d }
  .muted, .tick { fill: #9198a1 }
  .grid { stroke: #262c36 } .zero { stroke: #9198a1 }
  .band { fill: #6e7681; fill-opacity: 0.3 }
  .mark { stroke: #9198a1 }
  .range { stroke: #e6edf3 }
  .ours { fill: #2f9e7c } .peer { fill: #d9722b } .noise { fill: #6e7681 }
}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One quantity."""

    label: str
    value: float
    low: float
    """The range, drawn as a line across the end of the bar."""
    high: float
    kind: Kind


@dataclass(frozen=True, slots=True)
class Group:
    """Bars that belong together."""

    title: str
    bars: Sequence[Bar]
    band: tuple[float, float] | None = None
    """What lies in it says nothing: it is drawn grey behind the bars."""
    mark: float | None = None
    """A value that the bars are to be held against, drawn as a dashed line."""

    def values(self) -> Iterator[float]:
        """Yield everything that must lie on the axis."""
        yield 0.0
        yield from self.band or ()
        if self.mark is not None:
            yield self.mark
        for bar in self.bars:
            yield from (bar.value, bar.low, bar.high)


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture; all bars begin at 0."""

    title: str
    subtitle: str
    groups: Sequence[Group]
    digits: int
    """How many are shown behind the point."""
    unit: str = ""
    own_scales: bool = False
    """Each group has an axis of its own, because they differ by orders of magnitude."""


@dataclass(frozen=True, slots=True)
class _Scale:
    at: tuple[float, ...]
    left: float

    def x(self, value: float) -> float:
        low, high = self.at[0], self.at[-1]
        return self.left + _BARS * (value - low) / (high - low)


def ticks(low: float, high: float) -> tuple[float, ...]:
    """Return a few round numbers with equal distances, the outermost at or beyond the limits."""
    width = high - low or 1.0
    power = 10.0 ** math.floor(math.log10(width / _MOST_TICKS))
    step = next(
        power * step
        for step in (*_STEPS, 10 * _STEPS[-1])
        if math.ceil(high / (power * step)) - math.floor(low / (power * step)) <= _MOST_TICKS
    )
    first, last = math.floor(low / step), math.ceil(high / step)
    if first == last:
        last += 1
    return tuple(number * step for number in range(first, last + 1))


def draw(chart: Chart) -> str:
    """Return the chart as an SVG document."""
    body: list[str] = []
    y = float(_HEAD)
    longest = max((len(bar.label) for group in chart.groups for bar in group.bars), default=0)
    left = max(_LEFT, round(2 * _MARGIN + _CHARACTER * longest))
    whole = _scale(chart.groups, left)
    for number, group in enumerate(chart.groups):
        has_axis = chart.own_scales or number == len(chart.groups) - 1
        scale = _scale([group], left) if chart.own_scales else whole
        body += _group(chart, group, scale, y)
        y += (_GROUP_TITLE if group.title else 0) + _ROW * len(group.bars)
        if has_axis:
            body += _axis(scale, y, chart.unit)
            y += _AXIS
        y += _GAP
    height = round(y)
    return "\n".join([*_head(chart, left + _RIGHT, height), *body, "</svg>\n"])


def _head(chart: Chart, width: int, height: int) -> Iterator[str]:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    yield f"<title>{escape(chart.title)}</title>"
    yield f"<style>{_STYLE}</style>"
    box = f'x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"'
    yield f'<rect class="page" {box}/>'
    yield _text(_MARGIN, 30, chart.title, "title")
    yield _text(_MARGIN, 50, chart.subtitle, "muted")


def _group(chart: Chart, group: Group, scale: _Scale, y: float) -> Iterator[str]:
    if group.title:
        yield _text(_MARGIN, y + _GROUP_TITLE - 8, group.title, "group")
        y += _GROUP_TITLE
    bottom = y + _ROW * len(group.bars)
    if group.band is not None:
        left, right = map(scale.x, group.band)
        box = f'x="{left:.1f}" y="{y}" width="{right - left:.1f}" height="{bottom - y}"'
        yield f'<rect class="band" {box}/>'
    for tick in scale.at:
        yield _line("grid", scale.x(tick), y, scale.x(tick), bottom)
    for bar in group.bars:
        yield from _bar(chart, bar, scale, y + _ROW / 2)
        y += _ROW
    yield _line("zero", scale.x(0.0), bottom - _ROW * len(group.bars), scale.x(0.0), bottom)
    if group.mark is not None:
        x = scale.x(group.mark)
        yield _line("mark", x, bottom - _ROW * len(group.bars), x, bottom)


def _bar(chart: Chart, bar: Bar, scale: _Scale, middle: float) -> Iterator[str]:
    left, right = sorted((scale.x(0.0), scale.x(bar.value)))
    box = f'x="{left:.1f}" y="{middle - _BAR / 2}" width="{right - left:.1f}" height="{_BAR}"'
    yield f'<rect class="{bar.kind}" {box}/>'
    yield _line("range", scale.x(bar.low), middle, scale.x(bar.high), middle)
    yield _text(_MARGIN, middle + _BASELINE, bar.label)
    yield _text(scale.left + _VALUES, middle + _BASELINE, _shown(chart, bar))


def _shown(chart: Chart, bar: Bar) -> str:
    # There is room for so many digits, and no meaning in more of them.
    digits = chart.digits if abs(bar.value) < _LARGE else 0
    value, low, high = (f"{each:.{digits}f}" for each in (bar.value, bar.low, bar.high))
    if bar.low == bar.high:
        return f"{value}{chart.unit}"
    return f"{value}{chart.unit} [{low}..{high}]"


def _axis(scale: _Scale, y: float, unit: str) -> Iterator[str]:
    for tick in scale.at:
        # Sums of steps such as 0.1 + 0.2 are not round numbers.
        yield _text(scale.x(tick), y + 16, f"{round(tick, 9):g}{unit}", "tick", "middle")


def _scale(groups: Sequence[Group], left: float) -> _Scale:
    values = [0.0, *(value for group in groups for value in group.values())]
    return _Scale(ticks(min(values), max(values)), left)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    extra = f' class="{kind}"' if kind else ""
    extra += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{extra}>{escape(text)}</text>'
