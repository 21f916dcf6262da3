"""The linked flame graphs of the HTML report, in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gilscope.model.gil import Recording
from gilscope.reports.gil.html import report as html_report
from support.browser.browser import Page
from support.browser.page_looks import OVERFLOW
from support.recordings.gil import with_edges
from support.recordings.html import deep

Show = Callable[[Recording], Page]

_ALL = {
    "waiters": ["serve (app.py:9)", "handle (app.py:13)", "crunch (app.py:4)"],
    "holders": [
        "crunch (app.py:4)",
        "Pattern.scan <café> (match.py:27)",
        "crunch (app.py:5)",
        "no Python code",
        "unknown",
    ],
}
_HANDLED = "Only what handle (app.py:13) waited for"


@pytest.fixture
def show(browser: Page, tmp_path: Path) -> Show:
    """Open the report of a recording in a wide, light window."""
    path = tmp_path / "report.html"

    def opened_report(recording: Recording) -> Page:
        path.write_text(html_report.render(recording), encoding="utf-8")
        browser.prefer("light")
        browser.resize(1200)
        browser.open(path)
        return browser

    return opened_report


def _sites(page: Page, graph: str) -> list[str]:
    """Return which frames of *graph* are drawn and of the application, or missing in a stack."""
    names: list[str] = page.evaluate(
        f"[...document.querySelectorAll('#{graph} g.frame')]"
        ".map((it) => it.getAttribute('aria-label').split(': ')[0])"
    )
    return [name for name in _ALL[graph] if name in names]


def _chips(page: Page) -> Any:
    """Return what is said above the holders and above the waiters, None where nothing is."""
    return page.evaluate(
        "[...document.querySelectorAll('.chip')]"
        ".map((it) => it.checkVisibility() ? it.firstChild.textContent : null)"
    )


def test_holder_shows_what_it_delayed(show: Show) -> None:
    """
    And says so, until it is cleared: both graphs are whole then.
    """
    page = show(with_edges())
    before = _sites(page, "holders"), _sites(page, "waiters"), _chips(page)

    page.click("#holders g[aria-label^='no Python'] rect")
    linked = _sites(page, "waiters"), _chips(page)
    page.click("#waiters .chip button")

    assert (_ALL["holders"], _ALL["waiters"], [None, None]) == before
    assert (
        ["crunch (app.py:4)"],
        [None, "Only what no Python code delayed: 0.070\u00a0s, 4\u00a0%"],
    ) == linked
    assert before == (_sites(page, "holders"), _sites(page, "waiters"), _chips(page))


def test_waiter_shows_what_it_waited_for(show: Show) -> None:
    """
    The same in the other direction; a frame has the times of what is shown, of all that was lost.
    """
    page = show(with_edges())

    page.click("#waiters g[aria-label^='handle'] rect")

    assert ["crunch (app.py:4)", "Pattern.scan <café> (match.py:27)", "crunch (app.py:5)"] == [
        name for name in _sites(page, "holders") if name != "unknown"
    ]
    assert [f"{_HANDLED}: 1.530\u00a0s, 79\u00a0%", None] == _chips(page)
    assert "crunch (app.py:4): 1.130\u00a0s, 58\u00a0% of the time lost" == page.evaluate(
        "document.querySelector(\"#holders g[aria-label^='crunch (app.py:4)']\").ariaLabel"
    )


def test_both_can_be_chosen(show: Show) -> None:
    """
    Each is told above the graph that it filters, and can be taken away by itself.
    """
    page = show(with_edges())

    page.click("#holders g[aria-label^='crunch (app.py:4)'] rect")
    page.click("#waiters g[aria-label^='crunch (app.py:4)'] rect")
    both = _chips(page)
    page.click("#waiters .reset")

    assert [
        "Only what crunch (app.py:4) waited for: 0.410\u00a0s, 21\u00a0%",
        "Only what crunch (app.py:4) delayed: 1.470\u00a0s, 76\u00a0%",
    ] == both
    assert [None, both[1]] == _chips(page)


def test_links_obey_the_keyboard(show: Show) -> None:
    """
    Enter links; Escape in the other graph, which is whole already, takes the link away.
    """
    page = show(with_edges())

    page.evaluate("document.querySelector('#holders [tabindex=\"0\"]').focus()")
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.press(key)
    linked = _chips(page)
    page.evaluate("document.querySelector('#waiters [tabindex=\"0\"]').focus()")
    page.press("Escape")

    assert [None, "Only what deeper than what is noted delayed: 0.350\u00a0s, 18\u00a0%"] == linked
    assert [None, None] == _chips(page)


def test_graphs_begin_with_the_innermost_frame_when_asked(show: Show) -> None:
    """
    The same time, by where the threads stood; below are the callers. A link is given up first.
    """
    page = show(with_edges())
    page.click("#holders g[aria-label^='crunch (app.py:4)'] rect")

    page.click(".invert")
    first = page.evaluate(
        "[...document.querySelectorAll('#waiters g.frame')]"
        ".filter((it) => it.querySelector('rect').getAttribute('y') === '20')"
        ".map((it) => it.ariaLabel)"
    )
    page.click("#waiters g[aria-label^='handle'] rect")

    assert [
        "handle (app.py:13): 1.530\u00a0s, 79\u00a0% of the time lost",
        "crunch (app.py:4): 0.410\u00a0s, 21\u00a0% of the time lost",
    ] == first
    assert [f"{_HANDLED}: 1.530\u00a0s, 79\u00a0%", None] == _chips(page)
    assert "true" == page.evaluate("document.querySelector('.invert').ariaPressed")


def test_search_takes_regular_expressions(show: Show) -> None:
    """
    Once for the whole page; one that is none is told and finds nothing.
    """
    page = show(with_edges())
    hits = "document.querySelectorAll('.frame.hit').length"

    page.click("#flames .regex")
    page.click("#flames input[type=search]")
    page.write("^(handle|Pattern)")
    found = page.evaluate("[...document.querySelectorAll('.found')].map((it) => it.textContent)")
    marked = page.evaluate(hits)
    page.write("(")

    assert [
        "found in 0.350\u00a0s, 18\u00a0% of the time lost",
        "found in 1.530\u00a0s, 79\u00a0% of the time lost",
    ] == found
    assert 2 == marked
    assert 0 == page.evaluate(hits)
    assert ["this is not a regular expression"] * 3 == page.evaluate(
        "[...document.querySelectorAll('output')].map((it) => it.textContent)"
    )
    assert ["true", "true"] == page.evaluate(
        "[...document.querySelectorAll('input[type=search]')].map((it) => it.ariaInvalid)"
    )
    assert [True, True] == page.evaluate(
        "[...document.querySelectorAll('.regex')].map((it) => it.checked)"
    )


def test_narrow_deep_stack_does_not_make_the_graph_tall(show: Show) -> None:
    """
    Its 40 frames are one box from the thirteenth row on; a click on it shows them all.
    """
    page = show(deep())
    rows = "document.querySelector('#holders svg').viewBox.baseVal.height / 20"
    folded = page.evaluate(rows)

    page.click("#holders .deeper rect")

    assert 13 == folded
    assert 44 == page.evaluate(rows)


def test_chips_fit_into_a_narrow_window(show: Show) -> None:
    """
    420 pixels, with a link in each direction.
    """
    page = show(with_edges())
    page.resize(420)
    page.click("#holders g[aria-label^='crunch (app.py:4)'] rect")
    page.click("#waiters g[aria-label^='crunch (app.py:4)'] rect")

    assert 0 == page.evaluate(OVERFLOW)
    assert [] == page.complaints()
