"""How what is logged reaches a terminal, or whatever collects logs."""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gilscope.text.printable import printable_lines

__all__ = ["JsonLines", "LogLines"]


class LogLines(logging.Formatter):
    """Level and message, and the traceback where there is one, with nothing a terminal obeys.

    Messages and the texts of exceptions hold names and paths of traced programs. What a record has
    for programs, its ``fields``, follows the message as JSON, each after a colon.
    """

    def __init__(self) -> None:
        super().__init__("%(levelname)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of *record*."""
        fields = "".join(f": {json.dumps(value)}" for value in _fields(record).values())
        return printable_lines(super().format(record)) + fields


class JsonLines(logging.Formatter):
    """An object a line: time, level, logger, message, and the traceback where there is one.

    What a record has for programs, its ``fields``, stands beside these.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of *record*."""
        words = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            words["exception"] = self.formatException(record.exc_info)
        return json.dumps(words)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(record, "fields", {})
    return found
