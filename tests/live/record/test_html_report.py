"""The HTML report in a real browser: what its script does, and what it does not do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gilscope.model.gil import Recording
from gilscope.reports.gil.html import report as html_report
from support.browser.browser import Page
from support.browser.keyboard import walked
from support.browser.page_looks import OVERFLOW, TOO_FAINT
from support.recordings.gil import full_mode, with_edges, with_listings, with_moment
from support.recordings.html import hostile, huge, large

Show = Callable[[Recording], Page]

_ROWS = "[...document.querySelectorAll('tr.pair')].filter((row) => !row.hidden)"
_COLOURS = (
    "[document.body, ...document.querySelectorAll('td.s9, .waiters .app rect, .bar svg')]"
    ".map((it) => [getComputedStyle(it).backgroundColor, getComputedStyle(it).fill].join())"
)


@pytest.fixture
def show(browser: Page, tmp_path: Path) -> Show:
    """Open the report of a recording in a wide, light window."""
    path = tmp_path / "report.html"

    def opened_report(recording: Recording) -> Page:
        path.write_text(html_report.render(recording), encoding="utf-8")
        browser.switch_scripts(on=True)
        browser.prefer("light")
        browser.resize(1200)
        browser.open(path)
        return browser

    return opened_report


def _texts(page: Page, column: int) -> Any:
    return page.evaluate(f"{_ROWS}.map((row) => row.cells[{column}].textContent)")


def _frames(page: Page, graph: str) -> dict[str, float]:
    """Return the drawn frames of *graph*, and what part of its width each takes with its gap."""
    found: dict[str, float] = page.evaluate(
        f"Object.fromEntries([...document.querySelectorAll('#{graph} g.frame')].map((frame) => "
        "[frame.getAttribute('aria-label').split(': ')[0], Math.round(100 * "
        "(frame.querySelector('rect').getBBox().width + 1) / "
        f"document.querySelector('#{graph} svg').getBoundingClientRect().width)]))"
    )
    return found


@pytest.mark.parametrize(
    "recording", [with_edges, with_moment, with_listings, full_mode, large, hostile]
)
def test_page_asks_for_nothing_and_complains_of_nothing(
    show: Show, recording: Callable[[], Recording]
) -> None:
    """
    One file is read, and the console stays empty.
    """
    page = show(recording())

    (address,) = page.requests()
    assert address.startswith("file:///")
    assert [] == page.complaints()


def test_hostile_names_do_nothing(show: Show) -> None:
    """
    Also in the rows and graphs that the script makes.
    """
    page = show(hostile())
    page.click(".opener")

    assert "undefined" == page.evaluate("typeof window.evil")
    assert 0 == page.evaluate("document.querySelectorAll('img').length")
    assert page.evaluate("document.querySelector('.stack b').textContent").startswith("</script>")
    assert [] == page.complaints()


def test_policy_stops_what_the_page_does_not_bring(show: Show) -> None:
    """
    Were markup to get in, it could neither run nor load anything.
    """
    page = show(with_edges())
    page.evaluate(
        "new Promise((done) => { const made = document.createElement('img'); made.onerror = done;"
        "made.src = 'http://127.0.0.1:9/x'; document.body.append(made); })"
    )

    assert any("Content Security Policy" in complaint for complaint in page.complaints())
    with pytest.raises(RuntimeError, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")
    with pytest.raises(RuntimeError, match="TrustedScript"):
        page.evaluate("document.body.setAttribute('onclick', 'window.evil = 1')")


def test_columns_sort_and_say_so(show: Show) -> None:
    """
    Numbers begin with the largest, words with the first; a second click turns the order around.
    """
    page = show(with_edges())
    by_time = _texts(page, 3)

    page.click("[data-key=times] button")
    by_number = _texts(page, 5)
    page.click("[data-key=times] button")
    upward = _texts(page, 5)
    page.click("[data-key=holder] button")

    assert ["1.100\u00a0s", "0.350\u00a0s", "0.340\u00a0s", "0.070\u00a0s"] == by_time[:4]
    assert ["90", "90", "30", "25", "20", "5"] == by_number
    assert ["5", "20", "25", "30", "90", "90"] == upward
    assert ["crunch (app.py:4)"] * 3 == _texts(page, 2)[:3]
    assert [["holder", "ascending"]] == page.evaluate(
        "[...document.querySelectorAll('[aria-sort]')]"
        ".map((head) => [head.dataset.key, head.ariaSort])"
    )


def test_search_keeps_pairs_with_all_words_in_a_site_or_a_stack(show: Show) -> None:
    """
    ``serve`` is in no site, only further out; the sum of what is found is told.
    """
    page = show(with_edges())

    page.click("#pairs input")
    page.write("serve match")

    assert ["Pattern.scan <café> (match.py:27)"] == _texts(page, 2)
    assert "1 of 6 pairs, 0.350\u00a0s" == page.evaluate(
        "document.querySelector('.pairs-found').textContent"
    )


def test_search_marks_frames_and_sums_them_up(show: Show) -> None:
    """
    The same words, in both graphs; a frame below one that was found does not count again.
    """
    page = show(with_edges())

    page.click("#flames input")
    page.write("app.py")

    assert [3, 2] == page.evaluate(
        "['waiters', 'holders'].map((id) => document.querySelectorAll(`#${id} .hit`).length)"
    )
    assert [
        "found in 1.820\u00a0s, 94\u00a0% of the time lost",
        "found in 1.940\u00a0s, 100\u00a0% of the time lost",
    ] == page.evaluate("[...document.querySelectorAll('.found')].map((it) => it.textContent)")


def test_row_opens_to_both_stacks(show: Show) -> None:
    """
    Innermost first, with source lines where they are known; and it closes again.
    """
    page = show(with_edges())

    page.click(".opener")
    opened_text = page.evaluate(
        "[...document.querySelectorAll('tr.stacks ol')]"
        ".map((list) => [...list.children].map((item) => item.textContent))"
    )
    page.click(".opener")

    bootstrap = [
        "Thread.run threading.py:975",
        "Thread._bootstrap_inner threading.py:1038",
        "Thread._bootstrap threading.py:995",
    ]
    assert [
        ["handle app.py:13os.read(fd, 1)", "serve app.py:9", *bootstrap],
        ["crunch app.py:4total += sum(range(20000))", *bootstrap],
    ] == opened_text
    assert 0 == page.evaluate("document.querySelectorAll('tr.stacks').length")


def test_row_opens_with_the_keyboard(show: Show) -> None:
    """
    The button in it has the focus, says whether the row is open, and obeys Enter.
    """
    page = show(with_edges())

    page.evaluate("document.querySelectorAll('.opener')[1].focus()")
    page.press("Enter")

    assert "true" == page.evaluate("document.activeElement.getAttribute('aria-expanded')")
    assert "deeper than what is noted" == page.evaluate(
        "document.querySelector('.stacks .holder li:last-child').textContent"
    )


def test_every_control_is_reached_by_tab(show: Show) -> None:
    """
    In the order of the page, with a sign that it has the focus, and then Tab leaves the page.
    """
    walk = walked(show(with_edges()))

    assert tuple(range(walk.controls)) == walk.places
    assert () == walk.unseen


def test_long_tables_show_all_when_asked(show: Show) -> None:
    """
    25 rows first; the search goes over all of them.
    """
    page = show(large())
    shown = len(_texts(page, 0))
    words = page.evaluate("document.querySelector('.more').textContent")

    page.click(".more button")

    assert (25, "Show all 150 pairs") == (shown, words)
    assert 150 == len(_texts(page, 0))


def test_frames_are_as_wide_as_the_time_they_cost(show: Show) -> None:
    """
    In per cent of the graph.
    """
    page = show(with_edges())

    waiters, holders = _frames(page, "waiters"), _frames(page, "holders")

    assert (100, 79, 79, 21) == tuple(
        waiters[name]
        for name in ("all", "serve (app.py:9)", "handle (app.py:13)", "crunch (app.py:4)")
    )
    assert (76, 18, 4, 3) == tuple(
        holders[name]
        for name in (
            "crunch (app.py:4)",
            "Pattern.scan <café> (match.py:27)",
            "no Python code",
            "unknown",
        )
    )


def test_click_zooms_in_and_the_button_out(show: Show) -> None:
    """
    The frame and those above it take the whole width; its siblings are gone.
    """
    page = show(with_edges())
    before = _frames(page, "waiters")

    page.click("#waiters g[aria-label^='crunch'] rect")
    zoomed = _frames(page, "waiters")
    page.click("#waiters .reset")

    expected = dict.fromkeys(
        (
            "all",
            "Thread._bootstrap (threading.py:995)",
            "Thread._bootstrap_inner (threading.py:1038)",
            "Thread.run (threading.py:975)",
            "crunch (app.py:4)",
        ),
        100,
    )
    assert expected == zoomed
    assert before == _frames(page, "waiters")


def test_frames_can_be_walked_with_the_keyboard(show: Show) -> None:
    """
    Down to the inner frames, Enter zooms, Escape shows all again, and the focus is never lost.
    """
    page = show(with_edges())
    label = "document.activeElement.getAttribute('aria-label')"

    page.evaluate("document.querySelector('#holders [tabindex=\"0\"]').focus()")
    for key in ("ArrowDown", "ArrowRight", "ArrowDown", "ArrowUp"):
        page.press(key)
    walked = page.evaluate(label)
    page.press("Enter")
    zoomed = _frames(page, "holders")
    focused = page.evaluate(label)
    page.press("Escape")

    assert "deeper than what is noted: 0.350\u00a0s, 18\u00a0% of the time lost" == walked
    assert walked == focused
    assert 100 == zoomed["Pattern.scan <café> (match.py:27)"]
    assert "all: 1.940\u00a0s, 100\u00a0% of the time lost" == page.evaluate(label)
    assert 76 == _frames(page, "holders")["crunch (app.py:4)"]


def test_frame_under_the_pointer_is_told(show: Show) -> None:
    """
    With its time and its share, also where its text had to be cut.
    """
    page = show(with_edges())

    page.hover("#holders g[aria-label^='Pattern'] rect")

    expected = "Pattern.scan <café> (match.py:27): 0.350\u00a0s, 18\u00a0% of the time lost"
    assert f"{expected}." == page.evaluate("document.querySelector('#holders .detail').textContent")
    assert expected == page.evaluate(
        "document.querySelector(\"#holders g[aria-label^='Pattern'] title\").textContent"
    )
    assert page.evaluate(
        "document.querySelector(\"#holders g[aria-label^='Pattern'] text\").textContent"
    ).endswith("…")


def test_texts_stay_inside_their_frames(show: Show) -> None:
    """
    Cut to fit, at any width.
    """
    page = show(large())
    for width in (1200, 400):
        page.resize(width)
        assert 0 == page.evaluate(
            "[...document.querySelectorAll('g.frame')].filter((frame) => "
            "frame.querySelector('text').getComputedTextLength() > "
            "Math.max(0, frame.querySelector('rect').getBBox().width)).length"
        )


def test_matrix_switches_between_roles_and_sites(show: Show) -> None:
    """
    One of the two is shown.
    """
    page = show(with_edges())
    shown = (
        "['.matrix-role', '.matrix-site'].map((it) => document.querySelector(it).checkVisibility())"
    )
    before = page.evaluate(shown)

    page.click("label[for=by-site]")

    assert [True, False] == before
    assert [False, True] == page.evaluate(shown)


@pytest.mark.parametrize(
    "recording", [with_edges, with_moment, with_listings, full_mode, large, hostile]
)
def test_narrow_window_needs_no_sideways_scrolling(
    show: Show, recording: Callable[[], Recording]
) -> None:
    """
    400 pixels are enough, with a row open as well.
    """
    page = show(recording())
    page.resize(400)
    page.evaluate("document.querySelectorAll('.opener').forEach((button) => button.click())")

    assert 0 == page.evaluate(OVERFLOW)


def test_paper_has_room_for_all_of_it(show: Show) -> None:
    """
    Nobody can scroll a table there: A4 less its margins is enough for a matrix of ten columns.
    """
    page = show(large())
    page.prefer("dark", media="print")
    page.resize(718)

    assert 0 == page.evaluate(OVERFLOW)
    assert "light" == page.evaluate("getComputedStyle(document.documentElement).colorScheme")


def test_dark_mode_has_colours_of_its_own(show: Show) -> None:
    """
    Page, cells, frames and bars; paper stays light.
    """
    page = show(with_edges())
    light = page.evaluate(_COLOURS)
    page.prefer("dark")
    dark = page.evaluate(_COLOURS)
    page.prefer("dark", media="print")

    assert 5 <= len(light)
    assert [] == [pair for pair in zip(light, dark, strict=True) if pair[0] == pair[1]]
    assert light[1:] == page.evaluate(_COLOURS)[1:]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_background(show: Show, scheme: str) -> None:
    """
    A contrast of at least 4.5 in all cells and frames, as WCAG asks for small text.
    """
    page = show(large())
    page.prefer(scheme)

    assert [] == page.evaluate(TOO_FAINT)


def test_tables_are_there_without_scripts(show: Show, tmp_path: Path) -> None:
    """
    Where scripts may not run, all rows of all tables can be read, and what is missing is said.
    """
    page = show(large())
    page.switch_scripts(on=False)
    page.open(tmp_path / "report.html")
    page.switch_scripts(on=True)

    visible = (
        "[...document.querySelectorAll('SELECTOR')].filter((it) => it.checkVisibility()).length"
    )
    assert 150 == page.evaluate(visible.replace("SELECTOR", "tr.pair"))
    assert 1 == page.evaluate(visible.replace("SELECTOR", "noscript"))
    assert 0 == page.evaluate(visible.replace("SELECTOR", "input[type=search], figure"))


def test_twenty_thousand_pairs_can_be_opened(show: Show) -> None:
    """
    What is too narrow to be drawn is one box, and its number is told.
    """
    page = show(huge())

    assert 25 == len(_texts(page, 0))
    assert 7 == len(_frames(page, "waiters"))
    assert "20000 frames are too narrow" in page.evaluate(
        "document.querySelector('#waiters .detail').textContent"
    )
    assert [] == page.complaints()
