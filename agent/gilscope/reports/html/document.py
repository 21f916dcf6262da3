"""The head of a page that stands alone: it loads nothing, and runs no script but its own."""

import base64
import hashlib
from collections.abc import Iterator

from markupsafe import Markup

from gilscope.reports.html.markup import tag

__all__ = ["END", "digest", "head"]

END = Markup("</body></html>\n")

# What a program or a log says of itself is on the page: nothing else may act.
_STYLE_ALONE = Markup("default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'")
_WITH_SCRIPT = Markup(
    "default-src 'none'; style-src '{}'; script-src '{}'; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
)


def digest(content: str) -> str:
    """Return what a Content-Security-Policy knows *content*, a style or a script, by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def head(title: Markup, style: Markup, script: Markup | None = None) -> Iterator[Markup]:
    """Yield what comes before the body, and its beginning."""
    if script is None:
        policy = _STYLE_ALONE.format(digest(style))
    else:
        policy = _WITH_SCRIPT.format(digest(style), digest(script))
    yield Markup("<!doctype html>")
    yield Markup('<html lang="en"><head><meta charset="utf-8">')
    yield Markup('<meta http-equiv="Content-Security-Policy" content="{}">').format(policy)
    yield Markup('<meta name="viewport" content="width=device-width, initial-scale=1">')
    yield Markup('<meta name="color-scheme" content="light dark">')
    yield Markup('<meta name="referrer" content="no-referrer">')
    yield tag("title", title)
    yield Markup("<style>{}</style></head><body>").format(style)
