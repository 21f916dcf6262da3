"""Lines of text as the live view shows them: made of plain spans, fitted to a width in cells."""

from collections.abc import Hashable
from enum import Enum

from rich.cells import cell_len, set_cell_size

from gilscope.values import dataclass

__all__ = ["BLANK", "Line", "Row", "Span", "Tone", "fit", "fit_site", "left", "right"]

_CUT = "…"
_LEAST_FUNCTION = 4
"""Of a function's name, fewer cells tell nothing."""


class Tone(Enum):
    """How a span stands out, also where there are no colours."""

    PLAIN = "plain"
    BOLD = "bold"
    DIM = "dim"
    BAD = "bad"
    """Something is wrong."""
    HEAD = "head"
    """The head of a table."""
    SORTED = "sorted"
    """The head of the column that the table is sorted by."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Span, ...]

BLANK: Line = (Span(""),)


@dataclass(frozen=True, slots=True)
class Row:
    """What the cursor rests on: one line or a few."""

    key: Hashable
    """The same for the same thing, whatever its figures."""
    lines: tuple[Line, ...]


def fit(text: str, width: int) -> str:
    """Return *text* in *width* cells at the most, with an ellipsis where its end is missing."""
    if cell_len(text) <= width:
        return text
    return (set_cell_size(text, width - 1).rstrip() + _CUT) if width > 0 else ""


def fit_site(site: str, width: int) -> str:
    """Return ``function (file:line)`` in *width* cells at the most.

    What goes first are the folders of the path, and then the end of the function's name.
    """
    function, bracket, place = site.rpartition(" (")
    folders, slash, file = place.rpartition("/")
    if cell_len(site) > width and slash and folders != _CUT:
        return fit_site(f"{function}{bracket}{_CUT}/{file}", width)
    room = width - cell_len(bracket + place)
    if bracket and room >= _LEAST_FUNCTION:
        return fit(function, room) + bracket + place
    return fit(site, width)


def left(text: str, width: int) -> str:
    """Return *text* in exactly *width* cells, cut or padded on the right."""
    return set_cell_size(fit(text, width), max(0, width))


def right(text: str, width: int) -> str:
    """Return *text* padded on the left to *width* cells, and never cut: it is a number."""
    return " " * (width - cell_len(text)) + text
