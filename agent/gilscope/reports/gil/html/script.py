"""The script of the report, from its parts."""

from pathlib import Path

from markupsafe import Markup

from gilscope.reports.html.markup import asset, joined

__all__ = ["script"]

_FOLDER = Path(__file__).parent / "script"
_PARTS = ("basics", "search", "pairs", "flame_tree", "flame_graph", "flames", "page")
"""The last one begins; what the others define they may all use."""


def script() -> Markup:
    """Return the script, which leaves no name of its own in the page."""
    parts = [asset(_FOLDER / f"{part}.js") for part in _PARTS]
    return joined((Markup('(() => {\n"use strict";\n'), *parts, Markup("})();\n")), "\n")
