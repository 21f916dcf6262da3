"""The smallest pieces of the HTML report: harmless text, times, and data for its script."""

import json
from html import escape
from typing import Any

from gilscope.printable import printable
from gilscope.reports.units import percent, short_duration

__all__ = ["clean", "duration", "embedded_json", "figure", "shade", "share", "text", "time_lost"]

_NS_PER_S = 1_000_000_000
_LEAST_IN_SECONDS_NS = 1_000_000
"""What is shorter would lose all its digits in seconds with three decimals."""
_MOST_CHARACTERS = 400
_SHADES = 9
_NO_BREAK_SPACE = "\u00a0"
# What could end the element that the data stands in, or a line of a script.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def clean(words: str) -> str:
    """Return *words* of a traced process without what cannot be shown, cut to 400 characters."""
    shown = printable(words)
    return shown if len(shown) <= _MOST_CHARACTERS else f"{shown[: _MOST_CHARACTERS - 1]}…"


def text(words: str) -> str:
    """Return *words* as HTML text or the value of an attribute in double quotes."""
    return escape(clean(words))


def embedded_json(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """Return *value* as JSON that may stand in a ``script`` element. Strings must be clean."""
    dumped = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return dumped.translate(_ESCAPES)


def time_lost(ns: int) -> str:
    """Return *ns* in seconds to the millisecond, or in a smaller unit if it is shorter."""
    if 0 < ns < _LEAST_IN_SECONDS_NS:
        return duration(ns)
    return f"{ns / _NS_PER_S:.3f}{_NO_BREAK_SPACE}s"


def duration(ns: int) -> str:
    """Return *ns* to three digits in the unit that suits it: ``5.24 ms``."""
    return short_duration(ns).replace("us", "µs").replace(" ", _NO_BREAK_SPACE)


def share(part_ns: int, whole_ns: int) -> str:
    """Return what *part_ns* is of *whole_ns*, as a percentage."""
    return percent(part_ns / max(1, whole_ns)).replace(" ", _NO_BREAK_SPACE)


def shade(part_ns: int, largest_ns: int) -> int:
    """Return how dark to paint *part_ns*: 0 for nothing, 9 for *largest_ns*."""
    return -(-part_ns * _SHADES // max(1, largest_ns))


def figure(ns: int) -> str:
    """Return a right-aligned table cell with a time and its value for sorting."""
    return f'<td class="n" data-v="{ns}">{time_lost(ns)}</td>'
