"""A page of parts that are made elsewhere, for what has no page of its own making."""

from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup

from gilscope.reports.html.document import END, head
from gilscope.reports.html.markup import asset, joined, text

__all__ = ["page"]

_STYLE = Path(__file__).parent / "report.css"


def page(title: str, parts: Iterable[Markup]) -> Markup:
    """Return the page; it loads nothing, and runs no script."""
    body = (Markup("<main>"), *parts, Markup("</main>"), END)
    return joined((*head(text(title), asset(_STYLE)), *body), "\n")
