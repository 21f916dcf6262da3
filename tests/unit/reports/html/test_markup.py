"""The pieces that HTML is made of."""

import json
from pathlib import Path

import pytest
from markupsafe import Markup

from gilscope.reports.html.markup import asset, embedded_json, joined, tag, text

_NAME = "<b>\"'&"
_ESCAPED = "&lt;b&gt;&#34;&#39;&amp;"


def test_element_escapes_what_is_in_it() -> None:
    """
    Text and values of attributes; numbers stand as they are.
    """
    made = tag("td", _NAME, 5, class_=_NAME, data_v=7)

    assert f'<td class="{_ESCAPED}" data-v="7">{_ESCAPED}5</td>' == made
    assert Markup is type(made)


def test_element_takes_html_as_it_is() -> None:
    """
    Nothing is escaped twice.
    """
    assert f'<p title="{_ESCAPED}">{_ESCAPED}<br></p>' == tag(
        "p", text(_NAME), Markup("<br>"), title=text(_NAME)
    )


def test_joining_escapes_what_is_text() -> None:
    """
    The parts, should one be, and what comes between them.
    """
    made = joined([Markup("<i>"), str(_NAME)], " < ")  # type: ignore[list-item]

    assert f"<i> &lt; {_ESCAPED}" == made
    assert Markup is type(made)
    assert "<i><br><i>" == joined([Markup("<i>")] * 2, Markup("<br>"))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (_NAME, _ESCAPED),
        ("a\x1b[31m\u202eb", "a[31mb"),
        ("&" * 500, "&amp;" * 399 + "…"),
    ],
)
def test_text_is_escaped_and_can_be_shown(words: str, shown: str) -> None:
    """
    It is cut before it is escaped, so that no entity is cut in two.
    """
    assert shown == text(words)


def test_data_has_nothing_that_ends_a_script() -> None:
    """
    It says the same all the same.
    """
    made = embedded_json([_NAME])

    assert not set("<>&") & set(made)
    assert [_NAME] == json.loads(made)


def test_asset_is_the_file(tmp_path: Path) -> None:
    """
    A script or a style holds signs that would be escaped elsewhere.
    """
    path = tmp_path / "a.js"
    path.write_text("1 < 2 && 'ä'", encoding="utf-8")

    assert "<script>1 < 2 && 'ä'</script>" == tag("script", asset(path))
