"""The part of the landing page about waits that passed their limit."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from markupsafe import Markup

from gilscope.model.moment.capture import Capture
from gilscope.reports.html.markup import text
from gilscope.text.units import NS_PER_S
from gilscope.web.page.table import table

__all__ = ["captures_section"]

_HEADINGS = (
    ("process", ""),
    ("pid", "n"),
    ("at", ""),
    ("what was found", "s"),
    ("all threads", ""),
)
_CAPTION = (
    "Each was taken while a thread had waited for the GIL for longer than --capture-above, the "
    "latest first. Times are UTC."
)


def captures_section(captures: Sequence[Capture]) -> Iterator[Markup]:
    """Yield heading and table as HTML; nothing where there has been no capture."""
    if not captures:
        return
    yield Markup("<h2>Long waits that were captured</h2>")
    rows = [tuple(_cells(each)) for each in captures]
    yield from table("captures", _HEADINGS, rows, _CAPTION)


def _cells(capture: Capture) -> Iterator[str]:
    yield text(capture.process)
    yield str(capture.pid)
    yield f"{datetime.fromtimestamp(capture.at_ns // NS_PER_S, UTC):%Y-%m-%d %H:%M:%S}"
    yield text("; ".join(capture.verdict))
    link = Markup('<a href="capture?number={}{}">{}</a>')
    number = capture.number
    yield link.format(number, "", "stacks") + ", " + link.format(number, "&form=json", "JSON")
