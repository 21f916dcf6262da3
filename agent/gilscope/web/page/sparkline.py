"""Small curves of the last minutes, as SVG that stands in a table."""

from collections.abc import Iterator
from typing import NamedTuple

from markupsafe import Markup, escape

from gilscope.reports.html.markup import EMPTY, tag
from gilscope.series.recent import WINDOW_NS, Curve
from gilscope.text.units import NS_PER_S, percent

__all__ = ["held_cell", "lost_cell"]

_WIDTH = WINDOW_NS // NS_PER_S
"""A unit is a second."""
_HEIGHT = 24


class _Step(NamedTuple):
    began_ns: int
    """How long ago."""
    ended_ns: int
    value: float


def lost_cell(curve: Curve | None) -> Markup:
    """Return the share of time that is lost, and its curve; empty where nothing is known."""
    if curve is None or curve.lost is None:
        return EMPTY
    steps = [_Step(each.began_ns, each.ended_ns, each.lost) for each in curve.stretches]
    return _cell(curve.lost, steps, "lost")


def held_cell(curve: Curve | None, about: str = "") -> Markup:
    """Return the share of time for which locks were held, and its curve; else likewise.

    *about* marks an estimate.
    """
    if curve is None or curve.held is None:
        return EMPTY
    steps = [
        _Step(each.began_ns, each.ended_ns, each.held)
        for each in curve.stretches
        if each.held is not None
    ]
    return _cell(curve.held, steps, "held", about)


def _cell(now: float, steps: list[_Step], kind: str, about: str = "") -> Markup:
    values = [step.value for step in steps]
    words = (
        f"{about}{percent(now)} now; in the last five minutes {percent(min(values))} "
        f"to {percent(max(values))}"
    )
    # What is more than one thread, or one lock, is shown as well: the curve is then less high.
    path = "".join(_points(steps, full=max(1.0, *values)))
    drawn = tag(
        "svg",
        tag("title", words),
        Markup('<path d="{}"/>').format(path),
        class_=f"curve {kind}",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=words,
    )
    return escape(about + percent(now)) + drawn


def _points(steps: list[_Step], full: float) -> Iterator[str]:
    """Yield the outline of what is below the curve."""
    at_x = None
    for step in steps:
        begin_x = max(0, _WIDTH - step.began_ns // NS_PER_S)
        end_x = max(0, _WIDTH - step.ended_ns // NS_PER_S)
        if begin_x != at_x:
            yield f"{'' if at_x is None else f'V{_HEIGHT}Z'}M{begin_x} {_HEIGHT}"
        yield f"V{_HEIGHT - round(_HEIGHT * step.value / full)}H{end_x}"
        at_x = end_x
    if at_x is not None:
        yield f"V{_HEIGHT}Z"
