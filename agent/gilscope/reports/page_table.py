"""Tables of the landing page, which become cards where there is no room for columns."""

from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Column", "table"]

Column = tuple[str, str]
"""Its heading and its class: ``n`` for numbers, ``c`` for curves, ``t`` and ``k`` for widths, ``s``
for places in the code."""


def table(
    kind: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    caption: str = "",
    *,
    is_named: bool = True,
) -> Iterator[str]:
    """Yield a table of the class *kind* as lines of HTML.

    A row may be shorter than the head; where *is_named*, its first cell says what it is about.
    Cells and *caption* are HTML.
    """
    yield f'<table class="{kind}">'
    if caption:
        yield f"<caption>{caption}</caption>"
    head = "".join(f'<th scope="col" class="{look}">{name}</th>' for name, look in columns)
    yield f"<thead><tr>{head}</tr></thead><tbody>"
    for row in rows:
        yield f"<tr>{''.join(_cells(columns, row, is_named=is_named))}</tr>"
    yield "</tbody></table>"


def _cells(columns: Sequence[Column], row: Sequence[str], *, is_named: bool) -> Iterator[str]:
    for number, (name, look) in enumerate(columns):
        cell = row[number] if number < len(row) else ""
        if number == 0 and is_named:
            yield f'<th scope="row" class="{look}" data-name="{name}">{cell}</th>'
        else:
            yield f'<td class="{look}" data-name="{name}">{cell}</td>'
