"""The documentation as the tests of this folder see it: pages, their sections, their tables."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from support.paths import ROOT

__all__ = [
    "DOCS",
    "MAN_PAGES",
    "ROOT",
    "code_blocks",
    "first_cells",
    "json_keys",
    "markdown_pages",
    "section",
    "table_rows",
    "words_in_first_cells",
]

DOCS = ROOT / "docs"
MAN_PAGES = sorted((DOCS / "man").glob("*.md"))

_BUILT = {"build", "dist"}
_CODE = re.compile(r"`([^`]+)`")


def markdown_pages() -> list[Path]:
    """Return every Markdown file of the checkout, and none of what is built in it."""
    folders = [
        path
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith(".") and path.name not in _BUILT
    ]
    return sorted([*ROOT.glob("*.md"), *(page for each in folders for page in each.rglob("*.md"))])


def section(text: str, heading: str) -> str:
    """Return what stands below *heading* (``## NAME``), up to the next one of its level or above.

    Empty where there is no such heading.
    """
    level = len(heading) - len(heading.lstrip("#"))
    following = rf"(?m)^#{{1,{level}}} "
    found = re.search(rf"(?m)^{re.escape(heading)}$\n", text)
    return re.split(following, text[found.end() :])[0] if found else ""


def table_rows(text: str) -> list[tuple[str, ...]]:
    """Return the cells of every table row in *text*, without head rows and rules."""
    rows: list[tuple[str, ...]] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            continue
        cells = tuple(cell.strip() for cell in line.strip("|").split(" | "))
        if all(set(cell) <= {"-", " ", "|"} for cell in cells):
            rows.pop()
        else:
            rows.append(cells)
    return rows


def first_cells(text: str) -> list[str]:
    """Return the first cell of every table row in *text*."""
    return [row[0] for row in table_rows(text)]


def words_in_first_cells(text: str) -> set[str]:
    """Return what is marked as code in the first cells of the tables in *text*."""
    return {word for cell in first_cells(text) for word in _CODE.findall(cell)}


def code_blocks(text: str, language: str) -> Iterator[str]:
    """Yield the blocks that are fenced and marked as *language*."""
    for found in re.finditer(rf"(?ms)^```{language}\n(.*?)^```$", text):
        yield found[1]


def json_keys(value: Any, by_name: Collection[str]) -> set[str]:
    """Return all keys in a JSON value, less those of the objects *by_name*, which are names."""
    if isinstance(value, list):
        return {key for item in value for key in json_keys(item, by_name)}
    if not isinstance(value, dict):
        return set()
    found = set(value)
    for key, item in value.items():
        is_by_name = key in by_name and isinstance(item, dict)
        found |= json_keys(list(item.values()) if is_by_name else item, by_name)
    return found
