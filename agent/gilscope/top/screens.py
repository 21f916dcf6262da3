"""The screens of the live view: one that comes to rest, and a text to be read until escape."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Footer, Static

from gilscope.top.layout import Line
from gilscope.top.rows_widget import STYLES

__all__ = ["SteadyScreen", "TextScreen", "text_of"]


class SteadyScreen(Screen[None]):
    """Takes no size but the terminal's own of now.

    A screen tells itself of each new size once more. Two of them under way at once would follow
    each other without end, and nothing else would be done any more.
    """

    def _screen_resized(self, size: Size) -> None:
        if size == self.app.size:
            super()._screen_resized(size)


def text_of(*lines: Line) -> Text:
    """Return *lines* as textual shows them; what looks like markup in them is shown as it is."""
    text = Text(no_wrap=True)
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        for span in line:
            text.append(span.text, STYLES[span.tone])
    return text


class TextScreen(SteadyScreen):
    """Lines that can be scrolled through."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "back", key_display="esc"),
        Binding("q,enter", "dismiss", "back", show=False),
        Binding("up,k", "scroll(-1)", "scroll", show=False),
        Binding("down,j", "scroll(1)", "scroll", show=False),
        Binding("pageup", "scroll(-20)", "scroll", show=False),
        Binding("pagedown,space", "scroll(20)", "scroll", show=False),
    ]

    def __init__(self, *lines: Line) -> None:
        """Show *lines*."""
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        """Yield the widgets."""
        with VerticalScroll(can_focus=False):
            yield Static(text_of(*self._lines), id="text")
        yield Footer(show_command_palette=False, compact=True)

    def action_scroll(self, lines: int) -> None:
        """Scroll by so many lines."""
        area = self.query_one(VerticalScroll)
        area.scroll_to(y=area.scroll_offset.y + lines, animate=False)
