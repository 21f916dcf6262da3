"""The smallest pieces of HTML: text that does nothing, elements, times, and data for a script.

HTML is `Markup` and nothing else is. Where a plain string gets into it, it is escaped.
"""

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from gilscope.text.printable import printable
from gilscope.text.units import NS_PER_S, percent, short_duration

__all__ = [
    "EMPTY",
    "asset",
    "clean",
    "duration",
    "embedded_json",
    "figure",
    "joined",
    "large_figure",
    "numbered",
    "shade",
    "share",
    "tag",
    "text",
    "time_lost",
]

EMPTY = Markup()
_LEAST_IN_SECONDS_NS = 1_000_000
"""What is shorter would lose all its digits in seconds with three decimals."""
_MOST_CHARACTERS = 400
_SHADES = 9
_NO_BREAK_SPACE = "\u00a0"
# What could end the element that the data stands in, or a line of a script.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


# What there may be once in a page, and what refers to it.
_OF_ONE_PAGE = re.compile(r' (id|for|name|aria-controls)="([a-z][a-z-]*)"')


def clean(words: str) -> str:
    """Return *words* of a traced process without what cannot be shown, cut to 400 characters."""
    shown = printable(words)
    return shown if len(shown) <= _MOST_CHARACTERS else f"{shown[: _MOST_CHARACTERS - 1]}…"


def text(words: str) -> Markup:
    """Return *words* of a traced process as HTML text or the value of an attribute."""
    return escape(clean(words))


def numbered(line: Markup, number: int) -> Markup:
    """Return *line* with *number* in its ids, which the page has without a number already."""
    # Quotes of others are escaped, so that nothing that they write can look like that.
    return Markup(_OF_ONE_PAGE.sub(rf' \1="\2-{number}"', str(line)))  # noqa: S704 - see above


def tag(name: str, *children: str | int, **attributes: str | int) -> Markup:
    """Return the element *name*; in its attributes ``class_`` is class, ``data_v`` is data-v.

    Markup among *children* and values stands as it is, anything else is escaped.
    """
    # By hand: `Markup.format` takes three times as long, and reports have thousands of cells.
    parts = ["<", name]
    for key, value in attributes.items():
        parts += (_attribute(key), value if type(value) is Markup else escape(value), '"')
    parts.append(">")
    parts += [child if type(child) is Markup else escape(child) for child in children]
    parts += ("</", name, ">")
    return Markup("".join(parts))  # noqa: S704 - what is not ours is escaped


def joined(parts: Iterable[Markup], between: str = "") -> Markup:
    """Return *parts* one after the other, with *between* from one to the next."""
    safe = [part if type(part) is Markup else escape(part) for part in parts]
    return Markup(str(escape(between)).join(safe))  # noqa: S704 - all are escaped


def asset(path: Path) -> Markup:
    """Return a style or a script that gilscope ships, to stand in an element of its own."""
    return Markup(path.read_text(encoding="utf-8"))  # noqa: S704 - ours


def embedded_json(value: Any) -> Markup:  # noqa: ANN401 - whatever JSON can hold
    """Return *value* as JSON that may stand in a ``script`` element. Strings must be clean."""
    dumped = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(dumped.translate(_ESCAPES))  # noqa: S704 - nothing is left that could end it


def time_lost(ns: int) -> str:
    """Return *ns* in seconds to the millisecond, or in a smaller unit if it is shorter."""
    if 0 < ns < _LEAST_IN_SECONDS_NS:
        return duration(ns)
    return f"{ns / NS_PER_S:.3f}{_NO_BREAK_SPACE}s"


def duration(ns: int) -> str:
    """Return *ns* to three digits in the unit that suits it: ``5.24 ms``."""
    return short_duration(ns).replace("us", "µs").replace(" ", _NO_BREAK_SPACE)


def share(part_ns: int, whole_ns: int) -> str:
    """Return what *part_ns* is of *whole_ns*, as a percentage."""
    return percent(part_ns / max(1, whole_ns)).replace(" ", _NO_BREAK_SPACE)


def shade(part_ns: int, largest_ns: int) -> int:
    """Return how dark to paint *part_ns*: 0 for nothing, 9 for *largest_ns*."""
    return -(-part_ns * _SHADES // max(1, largest_ns))


def figure(ns: int) -> Markup:
    """Return a right-aligned table cell with a time and its value for sorting."""
    return tag("td", time_lost(ns), class_="n", data_v=ns)


def large_figure(value: str, name: str, note: str) -> Markup:
    """Return an entry of a list of figures: *value* in large letters, and what it is."""
    return Markup("<div><dt>{}</dt><dd><strong>{}</strong> <span>{}</span></dd></div>").format(
        name, value, note
    )


@cache
def _attribute(keyword: str) -> str:
    return f' {keyword.rstrip("_").replace("_", "-")}="'
