"""A list of rows of text with a cursor, which draws no more than what is seen."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gilscope.top.layout import Line, Row, Tone

__all__ = ["STYLES", "Rows", "strip"]

STYLES = {
    Tone.PLAIN: Style(),
    Tone.BOLD: Style(bold=True),
    Tone.DIM: Style(dim=True),
    Tone.BAD: Style(color="red", bold=True),
    Tone.HEAD: Style(color="cyan"),
    Tone.SORTED: Style(color="cyan", bold=True, underline=True),
}
"""In the terminal's own colours, so that they suit its background whatever that is."""

_CURSOR = Style(reverse=True)
_CURSOR_AT_REST = Style(underline=True)
"""While the keys go elsewhere, and what is shown there depends on it."""


def strip(line: Line, width: int, over: Style = Style()) -> Strip:  # noqa: B008 - it never changes
    """Return *line* as textual draws it, in *width* cells and with the style *over* on top."""
    spans = [Segment(span.text, STYLES[span.tone] + over) for span in line]
    return Strip(spans).adjust_cell_length(width, over)


class Rows(ScrollView, can_focus=True):
    """Rows with a cursor, which stays on what it rests on when the rows are replaced."""

    DEFAULT_CSS = """
    Rows { scrollbar-size-vertical: 1; scrollbar-gutter: stable; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "move(-1_000_000)", "first", show=False),
        Binding("end", "move(1_000_000)", "last", show=False),
        Binding("enter", "choose", "open", key_display="enter"),
    ]

    class Moved(Message):
        """The cursor rests on another row."""

        def __init__(self, rows: "Rows") -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> "Rows":
            """Whose cursor it is."""
            return self.rows

    class Chosen(Moved):
        """Enter was pressed on a row."""

    def __init__(self, *, id: str, is_marked: bool) -> None:  # noqa: A002 - textual's name
        """With *is_marked* the row of the cursor is told also while the keys go elsewhere."""
        super().__init__(id=id)
        self._at_rest = _CURSOR_AT_REST if is_marked else Style()
        self._rows: Sequence[Row] = ()
        self._lines: list[tuple[int, Line]] = []
        self._cursor = 0
        self._has_moved = False

    @property
    def key(self) -> Hashable | None:
        """The key of the row under the cursor; None: there are no rows."""
        return self._rows[self._cursor].key if self._rows else None

    def show(self, rows: Sequence[Row]) -> None:
        """Replace what is shown. A cursor that nobody has moved yet stays on the first row."""
        key = self.key
        places = {row.key: place for place, row in enumerate(rows)}
        place = places.get(key, self._cursor) if self._has_moved else 0
        self._rows = rows
        self._cursor = max(0, min(place, len(rows) - 1))
        self._lines = [(place, line) for place, row in enumerate(rows) for line in row.lines]
        self.virtual_size = Size(self.size.width, len(self._lines))
        self._keep_in_sight()
        self.refresh()
        if self.key != key:
            self.post_message(self.Moved(self))

    def render_line(self, y: int) -> Strip:
        """Return one line of what is seen."""
        number = y + self.scroll_offset.y
        width = self.size.width
        if number >= len(self._lines):
            return Strip.blank(width)
        place, line = self._lines[number]
        cursor = _CURSOR if self.has_focus else self._at_rest
        return strip(line, width, cursor if place == self._cursor else Style())

    def on_focus(self) -> None:
        """Show the cursor."""
        self.refresh()

    def on_blur(self) -> None:
        """Hide the cursor."""
        self.refresh()

    def action_move(self, rows: int) -> None:
        """Move the cursor by so many rows."""
        place = max(0, min(self._cursor + rows, len(self._rows) - 1))
        if place == self._cursor:
            return
        self._cursor = place
        self._has_moved = True
        self._keep_in_sight()
        self.refresh()
        self.post_message(self.Moved(self))

    def action_page(self, pages: int) -> None:
        """Move the cursor by so many screenfuls."""
        lines_a_row = max(1, len(self._lines) // max(1, len(self._rows)))
        self.action_move(pages * max(1, self.size.height // lines_a_row))

    def action_choose(self) -> None:
        """Tell that the row under the cursor was chosen."""
        if self._rows:
            self.post_message(self.Chosen(self))

    def _keep_in_sight(self) -> None:
        numbers = [n for n, (place, _) in enumerate(self._lines) if place == self._cursor]
        if numbers:
            region = Region(0, numbers[0], 1, len(numbers))
            self.scroll_to_region(region, animate=False, force=True)
