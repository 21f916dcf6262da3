"""Captures on the landing page."""

from gilscope.model.moment.capture import Capture
from gilscope.web.page.captures import captures_section


def test_each_has_a_row_with_links() -> None:
    """
    With the time in UTC; names of programs and threads are text, whatever they hold.
    """
    capture = Capture(
        12, 1_700_000_000_500_000_000, 7, "<b>app", ("thread 7 <i> holds the GIL",), b"", b""
    )
    html = "\n".join(captures_section([capture]))

    assert "2023-11-14 22:13:20" in html
    assert "&lt;b&gt;app" in html
    assert "thread 7 &lt;i&gt; holds the GIL" in html
    assert 'href="capture?number=12"' in html
    assert 'href="capture?number=12&amp;form=json"' in html


def test_nothing_without_any() -> None:
    """
    The page is as it was.
    """
    assert [] == list(captures_section([]))
