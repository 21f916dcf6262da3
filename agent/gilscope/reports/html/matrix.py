"""Time lost as a matrix of two names, such as waiters and holders: the costliest in colour."""

import re
from collections.abc import Iterable, Iterator, Mapping

from markupsafe import Markup, escape

from gilscope.naming.places import IN_WORDS
from gilscope.reports.html.markup import clean, joined, shade, tag, text, time_lost
from gilscope.values import dataclass

__all__ = ["OTHERS", "Matrix", "matrix_of", "matrix_table"]

OTHERS = "all others"
_MOST_ROWS = 12
_MOST_COLUMNS = 8
_WORDS = {*IN_WORDS.values(), OTHERS}
_JOINTS = re.compile(r"(?<=[._/])(?=\w)")
"""Where a long name may be broken."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Time lost by two names, each in the order of their sums, `OTHERS` last."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells_ns: Mapping[tuple[str, str], int]
    """By (row, column); only those that lost any."""

    def row_ns(self, row: str) -> int:
        """Return the sum of *row*."""
        return sum(self.cells_ns.get((row, column), 0) for column in self.columns)

    def column_ns(self, column: str) -> int:
        """Return the sum of *column*."""
        return sum(self.cells_ns.get((row, column), 0) for row in self.rows)

    @property
    def whole_ns(self) -> int:
        """Time lost by all."""
        return sum(self.cells_ns.values())


def matrix_of(
    lost: Iterable[tuple[str, str, int]], *, rows: int = _MOST_ROWS, columns: int = _MOST_COLUMNS
) -> Matrix:
    """Return *lost* (row, column, ns) with all but the costliest names put together."""
    named = list(lost)
    row_names = _costliest(((row, ns) for row, _, ns in named), rows)
    column_names = _costliest(((column, ns) for _, column, ns in named), columns)
    cells: dict[tuple[str, str], int] = {}
    for row, column, ns in named:
        key = (row if row in row_names else OTHERS, column if column in column_names else OTHERS)
        cells[key] = cells.get(key, 0) + ns
    return Matrix(row_names, column_names, {key: ns for key, ns in cells.items() if ns})


def matrix_table(by: str, matrix: Matrix, *, row: str, column: str, foot: str) -> Iterator[Markup]:
    """Yield *matrix* as a table for the choice *by*; the words head rows, columns and the foot."""
    largest_ns = max(matrix.cells_ns.values(), default=0)
    # It may be wider than the page; then it scrolls by itself, with the keyboard as well.
    yield Markup(
        '<div class="scroll matrix-{by}" tabindex="0" role="region" aria-label="by {by}">'
    ).format(by=by)
    yield Markup('<table class="matrix"><thead>')
    yield Markup(
        '<tr><td rowspan="2" class="corner">{}</td>'
        '<th scope="colgroup" colspan="{}" class="over">{}</th>'
        '<th scope="col" rowspan="2" class="n sum">total lost</th></tr><tr>'
    ).format(row, len(matrix.columns), column)
    for name in matrix.columns:
        yield tag("th", _breakable(name), scope="col", class_="n site")
    yield Markup("</tr></thead><tbody>")
    for name in matrix.rows:
        cells = (
            _cell(matrix.cells_ns.get((name, other), 0), largest_ns) for other in matrix.columns
        )
        yield tag(
            "tr",
            tag("th", _breakable(name), scope="row", class_="site"),
            *cells,
            tag("td", time_lost(matrix.row_ns(name)), class_="n sum"),
        )
    yield Markup('</tbody><tfoot><tr><th scope="row">{}</th>').format(foot)
    for name in matrix.columns:
        yield tag("td", time_lost(matrix.column_ns(name)), class_="n")
    yield Markup('<td class="n sum">{}</td></tr></tfoot></table></div>').format(
        time_lost(matrix.whole_ns)
    )


def _costliest(named: Iterable[tuple[str, int]], most: int) -> tuple[str, ...]:
    sums: dict[str, int] = {}
    for name, ns in named:
        sums[name] = sums.get(name, 0) + ns
    ranked = sorted(sums, key=lambda name: (-sums[name], name))
    # One name that would be left out can as well stand for itself.
    return tuple(ranked) if len(ranked) <= most + 1 else (*ranked[:most], OTHERS)


def _cell(ns: int, largest_ns: int) -> Markup:
    if not ns:
        return Markup('<td class="n none">·</td>')
    return tag("td", time_lost(ns), class_=f"n s{shade(ns, largest_ns)}")


def _breakable(name: str) -> Markup:
    # The place goes to a line of its own before the function is broken.
    function, opening, place = name.rpartition(" (")
    if name in _WORDS:
        return tag("span", text(name), class_="words")
    if not opening:
        return text(name)
    shown = tag("span", "(", _cut_up(place), class_="place")
    return Markup("{} {}").format(_cut_up(function), shown)


def _cut_up(name: str) -> Markup:
    return joined(map(escape, _JOINTS.split(clean(name))), Markup("<wbr>"))
