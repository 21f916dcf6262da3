"""Where panels stand: sections one below the other, in lines of panels of the same width."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.generator.panels import Panel
from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.dashboard import GridPos

__all__ = ["COLUMNS", "Line", "Section", "lay_out"]

COLUMNS = 24
"""Width of every dashboard."""


@dataclass(frozen=True, slots=True)
class Line:
    """Panels side by side; their number divides the columns."""

    height: int
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Lines below a heading."""

    title: str
    lines: tuple[Line, ...]


def lay_out(page: dashboard.Dashboard, sections: Sequence[Section]) -> None:
    """Add all sections to *page*.

    The SDK's own layout runs over the right edge, and places what stands at 0, 0 elsewhere; so
    each position is given, and a heading comes first.
    """
    top, number = 0, 0
    for section in sections:
        number += 1
        heading = dashboard.Row(section.title).id(number)
        page.with_row(heading.grid_pos(GridPos(h=1, w=COLUMNS, x=0, y=top)))
        top += 1
        for line in section.lines:
            width = COLUMNS // len(line.panels)
            for place, panel in enumerate(line.panels):
                number += 1
                position = GridPos(h=line.height, w=width, x=place * width, y=top)
                page.with_panel(panel.id(number).grid_pos(position))
            top += line.height
