"""Tables of the landing page, which become cards where there is no room for columns."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from markupsafe import Markup

from gilscope.reports.html.markup import tag

__all__ = ["Column", "table"]

Column = tuple[str, str]
"""Its heading and its class: ``n`` for numbers, ``c`` for curves, ``t`` and ``k`` for widths, ``s``
for places in the code."""


def table(
    kind: str,
    columns: tuple[Column, ...],
    rows: Iterable[Sequence[str]],
    caption: str = "",
    *,
    is_named: bool = True,
) -> Iterator[Markup]:
    """Yield a table of the class *kind* as lines of HTML.

    A row may be shorter than the head; where *is_named*, its first cell says what it is about.
    Cells that are `Markup` stand as they are, all others are text.
    """
    yield Markup('<table class="{}">').format(kind)
    if caption:
        yield tag("caption", caption)
    yield _head(columns)
    frames = _frames(columns, is_named=is_named)
    for row in rows:
        yield tag("tr", *_cells(frames, row))
    yield Markup("</tbody></table>")


# The live page has dozens of tables of few kinds, and is made every five seconds.
@cache
def _head(columns: tuple[Column, ...]) -> Markup:
    headings = (tag("th", name, scope="col", class_=look) for name, look in columns)
    return tag("thead", tag("tr", *headings)) + Markup("<tbody>")


@cache
def _frames(columns: tuple[Column, ...], *, is_named: bool) -> list[tuple[Markup, Markup]]:
    """Return what stands before and behind the cell of each column."""
    frames = [
        (Markup('<td class="{}" data-name="{}">').format(look, name), Markup("</td>"))
        for name, look in columns
    ]
    if is_named:
        name, look = columns[0]
        start = Markup('<th scope="row" class="{}" data-name="{}">').format(look, name)
        frames[0] = (start, Markup("</th>"))
    return frames


def _cells(frames: Iterable[tuple[Markup, Markup]], row: Sequence[str]) -> list[str]:
    cells = iter(row)
    parts: list[str] = []
    for start, end in frames:
        parts += (start, next(cells, ""), end)
    return parts
