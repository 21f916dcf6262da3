"""Finds lines in the text of a Python source file, if it is the text that the program runs."""

import io
import re
import tokenize
from collections.abc import Mapping, Sequence

from gilscope.model.stack import Frame
from gilscope.text.printable import printable

__all__ = ["lines_of", "listing_of"]

_LONGEST_LINE = 160
"""Characters that are kept of a line: more would fill a screen."""


def lines_of(content: bytes, frames: Sequence[Frame]) -> dict[int, str]:
    """Return the lines at which *frames* stood, by number, without indentation.

    *frames* are all of the file whose bytes are *content*. Empty where a function does not begin at
    the line at which it should: the file is not what the program was compiled from.
    """
    lines = _decoded(content)
    if lines is None or not all(_begins_there(frame, lines) for frame in frames):
        return {}
    wanted = sorted({frame.line for frame in frames if frame.line is not None})
    found = {number: _shown(lines[number - 1]) for number in wanted if 0 < number <= len(lines)}
    return {number: line for number, line in found.items() if line}


def listing_of(content: bytes, numbers: Mapping[Frame, Sequence[int]]) -> dict[int, str]:
    """Return the lines whose *numbers* are asked for, as they are indented; as `lines_of` else.

    Empty lines are among them, and lines beyond the end are not.
    """
    lines = _decoded(content)
    if lines is None or not all(_begins_there(frame, lines) for frame in numbers):
        return {}
    wanted = sorted({number for those in numbers.values() for number in those})
    return {number: _indented(lines[number - 1]) for number in wanted if 0 < number <= len(lines)}


def _decoded(content: bytes) -> list[str] | None:
    # Any codec can be named in a cookie, and each fails in its own way.
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = io.TextIOWrapper(io.BytesIO(content), encoding, errors="replace").read()
    except (SyntaxError, LookupError, ValueError):
        return None
    # Not splitlines(), which would also split at form feeds, and Python does not.
    return text.split("\n")


def _begins_there(frame: Frame, lines: Sequence[str]) -> bool:
    name = frame.function.rpartition(".")[2]
    if name == "<module>":
        return True
    if not 0 < frame.first_line <= len(lines):
        return False
    if name.startswith("<") and name != "<lambda>":
        # Comprehensions and their like are not named in the text.
        return True
    line = lines[frame.first_line - 1].strip()
    words = "lambda" if name == "<lambda>" else rf"(?:def|class)\s+{re.escape(name)}"
    return line.startswith("@") or re.search(rf"\b{words}\b", line) is not None


def _indented(line: str) -> str:
    expanded = line.expandtabs()
    indentation = len(expanded) - len(expanded.lstrip(" "))
    return " " * min(indentation, _LONGEST_LINE) + _shown(line)


def _shown(line: str) -> str:
    shown = printable(line.strip()).strip()
    return shown if len(shown) <= _LONGEST_LINE else f"{shown[:_LONGEST_LINE]} …"
