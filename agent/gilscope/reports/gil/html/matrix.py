"""Who kept whom waiting, as a matrix of waiters and holders."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from gilscope.model.gil import Edge
from gilscope.naming.places import SiteNames, role_of
from gilscope.reports.html.matrix import matrix_of, matrix_table

__all__ = ["matrix_section"]


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
    for by, name in (("role", role_of), ("site", names.innermost)):
        matrix = matrix_of((name(edge.waiter), name(edge.holder), edge.lost.ns) for edge in edges)
        yield from matrix_table(by, matrix, row="waiter", column="held by", foot="because of it")
    yield Markup("</div></section>")
