"""Which locks cost which places how much, as a matrix."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from gilscope.naming.lock_words import short_words
from gilscope.naming.places import SiteNames
from gilscope.reports.html.matrix import matrix_of, matrix_table
from gilscope.series.locks.costliest import LockPlace

__all__ = ["matrix"]


def matrix(places: Sequence[LockPlace], names: SiteNames) -> Iterator[Markup]:
    """Yield the matrix of *places* and of what was waited for there; nothing where that is one."""
    lost = [
        (names.innermost(wait.stack), short_words(wait), wait.wait_ns)
        for place in places
        for wait in place.waits
    ]
    found = matrix_of(lost)
    if len(found.cells_ns) <= 1:
        return
    yield Markup('<section id="lock-matrix"><h2>Which lock costs which place</h2>')
    yield Markup(
        "<p>Time that threads lost at the place of a row, waiting for the lock of a column. "
        "The stronger the colour, the more.</p>"
    )
    yield from matrix_table("lock", found, row="waiting place", column="lock", foot="because of it")
    yield Markup("</section>")
