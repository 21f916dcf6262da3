"""A screen that comes to rest when its terminal is given one size after the other."""

from textual.geometry import Size
from textual.screen import Screen

__all__ = ["SteadyScreen"]


class SteadyScreen(Screen[None]):
    """Takes no size but the terminal's own of now.

    A screen tells itself of each new size once more. Two of them under way at once would follow
    each other without end, and nothing else would be done any more.
    """

    def _screen_resized(self, size: Size) -> None:
        if size == self.app.size:
            super()._screen_resized(size)
