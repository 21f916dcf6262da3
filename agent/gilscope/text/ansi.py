"""Marks up text for a terminal, or leaves it alone."""

__all__ = ["Paint"]

_BOLD, _RED, _DIM, _PLAIN = "\033[1m", "\033[31m", "\033[2m", "\033[0m"


class Paint:
    """The few ways in which a report is marked up."""

    def __init__(self, *, on: bool) -> None:
        self._on = on

    def bold(self, text: str) -> str:
        """Return *text* as a heading or a name."""
        return f"{_BOLD}{text}{_PLAIN}" if self._on else text

    def red(self, text: str) -> str:
        """Return *text* as something that is wrong."""
        return f"{_RED}{text}{_PLAIN}" if self._on else text

    def dim(self, text: str) -> str:
        """Return *text* as an explanation."""
        return f"{_DIM}{text}{_PLAIN}" if self._on else text
