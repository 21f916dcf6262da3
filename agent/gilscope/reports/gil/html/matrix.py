"""Who kept whom waiting, as a matrix of waiters and holders."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from gilscope.model.gil import Edge
from gilscope.model.stack import Stack
from gilscope.naming.places import IN_WORDS, SiteNames, role_of
from gilscope.reports.html.markup import clean, joined, shade, tag, text, time_lost

__all__ = ["OTHERS", "Matrix", "matrix_of", "matrix_section"]

OTHERS = "all others"
_MOST_ROWS = 12
_MOST_COLUMNS = 8
_WORDS = {*IN_WORDS.values(), OTHERS}
_JOINTS = re.compile(r"(?<=[._/])(?=\w)")
"""Where a long name may be broken."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Time lost by waiter and holder, both in the order of their sums, `OTHERS` last."""

    waiters: tuple[str, ...]
    holders: tuple[str, ...]
    cells_ns: Mapping[tuple[str, str], int]
    """By (waiter, holder); only those that lost any."""

    def row_ns(self, waiter: str) -> int:
        """Return the time that *waiter* lost."""
        return sum(self.cells_ns.get((waiter, holder), 0) for holder in self.holders)

    def column_ns(self, holder: str) -> int:
        """Return the time that was lost because of *holder*."""
        return sum(self.cells_ns.get((waiter, holder), 0) for waiter in self.waiters)

    @property
    def whole_ns(self) -> int:
        """Time lost by all."""
        return sum(self.cells_ns.values())


def matrix_of(
    edges: Iterable[Edge],
    name: Callable[[Stack], str],
    *,
    rows: int = _MOST_ROWS,
    columns: int = _MOST_COLUMNS,
) -> Matrix:
    """Return *edges* by the *name* of their ends, with all but the costliest names put together."""
    named = [(name(edge.waiter), name(edge.holder), edge.lost.ns) for edge in edges]
    waiters = _costliest(((waiter, ns) for waiter, _, ns in named), rows)
    holders = _costliest(((holder, ns) for _, holder, ns in named), columns)
    cells: dict[tuple[str, str], int] = {}
    for waiter, holder, ns in named:
        key = (
            waiter if waiter in waiters else OTHERS,
            holder if holder in holders else OTHERS,
        )
        cells[key] = cells.get(key, 0) + ns
    return Matrix(waiters, holders, {key: ns for key, ns in cells.items() if ns})


def matrix_section(edges: Sequence[Edge], names: SiteNames) -> Iterator[Markup]:
    """Yield the matrix by thread role and, behind a switch, the one by site."""
    yield Markup('<section id="matrix"><h2>Who waited for whom</h2>')
    yield Markup(
        "<p>Time that the threads of a row lost while a thread of a column held the GIL. "
        "The stronger the colour, the more.</p>"
    )
    yield Markup('<div class="switch">')
    yield Markup('<input type="radio" name="matrix" class="by-role" id="by-role" checked>')
    yield Markup('<label for="by-role">by thread role</label>')
    yield Markup(
        '<input type="radio" name="matrix" class="by-site" id="by-site">'
        '<label for="by-site">by site</label>'
    )
    yield from _table("role", matrix_of(edges, role_of))
    yield from _table("site", matrix_of(edges, names.innermost))
    yield Markup("</div></section>")


def _costliest(named: Iterable[tuple[str, int]], most: int) -> tuple[str, ...]:
    sums: dict[str, int] = {}
    for name, ns in named:
        sums[name] = sums.get(name, 0) + ns
    ranked = sorted(sums, key=lambda name: (-sums[name], name))
    # One name that would be left out can as well stand for itself.
    return tuple(ranked) if len(ranked) <= most + 1 else (*ranked[:most], OTHERS)


def _table(by: str, matrix: Matrix) -> Iterator[Markup]:
    largest_ns = max(matrix.cells_ns.values(), default=0)
    # It may be wider than the page; then it scrolls by itself, with the keyboard as well.
    yield Markup(
        '<div class="scroll matrix-{by}" tabindex="0" role="region" aria-label="by {by}">'
    ).format(by=by)
    yield Markup('<table class="matrix"><thead>')
    yield Markup(
        '<tr><td rowspan="2" class="corner">waiter</td>'
        '<th scope="colgroup" colspan="{}" class="over">held by</th>'
        '<th scope="col" rowspan="2" class="n sum">total lost</th></tr><tr>'
    ).format(len(matrix.holders))
    for holder in matrix.holders:
        yield tag("th", _breakable(holder), scope="col", class_="n site")
    yield Markup("</tr></thead><tbody>")
    for waiter in matrix.waiters:
        cells = (
            _cell(matrix.cells_ns.get((waiter, holder), 0), largest_ns) for holder in matrix.holders
        )
        yield tag(
            "tr",
            tag("th", _breakable(waiter), scope="row", class_="site"),
            *cells,
            tag("td", time_lost(matrix.row_ns(waiter)), class_="n sum"),
        )
    yield Markup('</tbody><tfoot><tr><th scope="row">because of it</th>')
    for holder in matrix.holders:
        yield tag("td", time_lost(matrix.column_ns(holder)), class_="n")
    yield Markup('<td class="n sum">{}</td></tr></tfoot></table></div>').format(
        time_lost(matrix.whole_ns)
    )


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
