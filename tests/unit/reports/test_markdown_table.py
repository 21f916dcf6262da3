"""Tables of Markdown, as a reader of Markdown shows them."""

import html
import re

import pytest
from markdown_it import MarkdownIt

from gilscope.reports.markdown_table import plain, table


def _shown(text: str) -> str:
    return str(MarkdownIt("commonmark").enable("table").render(text))


@pytest.mark.parametrize(
    "name",
    [
        "compute_price (quotes.py:18)",
        "C.__init__ (a_b.py:1)",
        "<b>bold</b>",
        "<img src=x onerror=y>",
        "a | b",
        "**bold** *and* _not_ __so__",
        "[words](http://127.0.0.1/)",
        "\\| back \\* slash",
        "~~gone~~ &amp; &lt;",
    ],
)
def test_names_are_shown_as_they_are(name: str) -> None:
    """
    They are no HTML, end no cell and mark nothing.
    """
    shown = _shown("\n".join(table(("name", "number"), [(name, "7")])))
    cells = re.findall(r"<td[^>]*>(.*?)</td>", shown)

    assert [name, "7"] == [html.unescape(cell) for cell in cells]
    assert not re.search(r"<(b|img|strong|em|a|s)\b", shown)


def test_code_marks_become_others() -> None:
    """
    No escape holds in all readers.
    """
    assert "'x' of y" == plain("`x` of\ny")


def test_underscores_within_words_stay() -> None:
    """
    Most names have some, and people read the source, too.
    """
    assert "compute_price" == plain("compute_price")
    assert r"C.\_\_init\_\_" == plain("C.__init__")


def test_figures_stand_on_the_right() -> None:
    """
    The head says so.
    """
    lines = [*table(("a", "b", "c"), [("x", "1", "2"), ("y", "3", "4")])]

    assert ["| a | b | c |", "| --- | ---: | ---: |", "| x | 1 | 2 |", "| y | 3 | 4 |"] == lines
