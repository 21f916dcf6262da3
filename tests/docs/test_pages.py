"""All pages: links lead somewhere, pictures are small, and nothing is of one machine."""

import platform
import re
from pathlib import Path

import pytest

from support.docs.pages import DOCS, ROOT, markdown_pages

_PAGES = markdown_pages()
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_MOST_PICTURE_BYTES = 200_000
_TEXTS = sorted({*_PAGES, *(path for path in DOCS.rglob("*") if path.suffix in (".txt", ".py"))})


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


def _is_broken(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path) if path else page
    if not target.resolve().is_relative_to(ROOT) or not target.exists():
        return True
    return bool(anchor) and anchor not in _anchors(target)


@pytest.mark.parametrize("page", _PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """
    Each relative link names a file of this checkout, and a heading in it where it says so.
    """
    links = [link for link in _LINK.findall(page.read_text()) if "://" not in link]

    assert [] == [link for link in links if _is_broken(page, link)]


@pytest.mark.parametrize("page", _TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_of_one_machine(page: Path) -> None:
    """
    No page names this checkout's folder, this user's home, or this host.
    """
    names = [re.escape(str(ROOT)), re.escape(str(Path.home())), rf"\b{platform.node()}\b"]
    if platform.node() in ("", "localhost"):
        names.pop()

    assert [] == [name for name in names if re.search(rf"{name}", page.read_text())]


def test_pictures_are_small() -> None:
    """
    A picture is there for each script that makes one, and does not weigh the checkout down.
    """
    sizes = {path.name: path.stat().st_size for path in (DOCS / "pictures").glob("*.png")}

    assert {"dashboard-overview.png", "page.png", "record.png", "report.png", "top.png"} == set(
        sizes
    )
    assert [] == [name for name, size in sizes.items() if size > _MOST_PICTURE_BYTES]
