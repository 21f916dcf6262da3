"""Reads HTML strictly: what is opened is closed, in order."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Element", "parse"]

_WITHOUT_END = {"input", "br", "meta", "wbr"}


@dataclass(slots=True)
class Element:
    """One element and what is in it."""

    name: str
    attributes: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    def all(self, name: str, **attributes: str) -> list["Element"]:
        """Return the elements below of that *name*, whose *attributes* have these words."""
        return [
            element
            for element in self.below()
            if element.name == name
            and all(
                value in element.attributes.get(key.rstrip("_"), "").split()
                for key, value in attributes.items()
            )
        ]

    def one(self, name: str, **attributes: str) -> "Element":
        """Return the only element that `all` finds."""
        (element,) = self.all(name, **attributes)
        return element

    @property
    def text(self) -> str:
        """All text below, with plain spaces."""
        parts = (child if isinstance(child, str) else child.text for child in self.children)
        return " ".join("".join(parts).replace("\u00a0", " ").split())

    @property
    def rows(self) -> list[list[str]]:
        """The texts of the cells below, row by row."""
        return [
            [
                cell.text
                for cell in row.children
                if isinstance(cell, Element) and cell.name in ("td", "th")
            ]
            for row in self.all("tr")
        ]

    def below(self) -> Iterator["Element"]:
        """Yield every element below, in the order of the page."""
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child.below()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in _WITHOUT_END and not (self.get_starttag_text() or "").endswith("/>"):
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        closed = self.open.pop()
        assert tag == closed.name, f"</{tag}> ends <{closed.name}>"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(html: str) -> Element:
    """Return what is above all elements of *html*; fails where they do not nest."""
    reader = _Reader()
    # What is parsed is no HTML any more, and parts of `Markup` would be `Markup`.
    reader.feed(str(html))
    reader.close()
    (top,) = reader.open
    return top
