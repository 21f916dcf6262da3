"""How what is logged reaches a terminal."""

import logging

from gilscope.text.printable import printable_lines

__all__ = ["LogLines"]


class LogLines(logging.Formatter):
    """Level and message, and the traceback where there is one, with nothing a terminal obeys.

    Messages and the texts of exceptions hold names and paths of traced programs.
    """

    def __init__(self) -> None:
        super().__init__("%(levelname)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of *record*."""
        return printable_lines(super().format(record))
