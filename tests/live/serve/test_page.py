"""The landing page in a real browser: how it looks, and how it refreshes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import bcrypt
import pytest

from gilscope.series.blocking import BlockingSeries
from gilscope.text.printable import printable
from gilscope.web.config.access import Access
from gilscope.web.guard import OPEN, Guard
from gilscope.web.health import Pulse
from gilscope.web.server import Server
from support.browser.browser import Page
from support.browser.keyboard import walked
from support.browser.page_looks import OVERFLOW, TOO_FAINT
from support.recordings.gil import MS, PROCESS, convoy, full_mode, with_edges
from support.recordings.html import EVIL, hostile
from support.recordings.transactions import stm_observation
from support.reports.scraped import Fixed
from support.stm_log.following import followed_log
from support.stm_log.program import played_log

_S = 1000 * MS
_NEVER_S, _AT_ONCE_S = 3600.0, 0.05

_UPDATED = """
new Promise((done) => {
  const root = document.documentElement;
  const before = root.dataset.updates;
  new MutationObserver(() => { if (root.dataset.updates > (before ?? 0)) done(true); })
    .observe(root, {attributes: true, attributeFilter: ["data-updates"]});
  document.dispatchEvent(new Event("visibilitychange"));
})
"""
"""Does what a tab that is looked at again does, and waits until the page is up to date."""

_WAITING = "document.querySelector('.targets [data-name=waiting]').firstChild.data"
_PROBLEM = "document.getElementById('problem')"


@contextmanager
def _served(
    source: Fixed, *, guard: Guard = OPEN, every_s: float = _NEVER_S
) -> Iterator[tuple[Server, str]]:
    server = Server(("127.0.0.1", 0), guard, page_every_s=every_s)
    log = followed_log(played_log("E16", 300).content)
    thread = threading.Thread(
        target=server.run, args=(source.source, Pulse(), BlockingSeries(50), lambda: [log])
    )
    thread.start()
    try:
        yield server, server.url
    finally:
        server.stop()
        thread.join()
        server.close()


def _full() -> Fixed:
    """Return a source with something of every kind."""
    seen = full_mode().observation
    edges = with_edges().observation.totals
    lossy = replace(seen.totals, edges=edges.edges, slow_drops=edges.slow_drops)
    return Fixed(
        [
            replace(seen, totals=lossy),
            replace(
                convoy().observation,
                process=replace(PROCESS, name="gunicorn: worker [shop.wsgi]", pid=50000),
            ),
            replace(
                convoy().observation,
                process=replace(PROCESS, name="wrong.py", pid=60000),
                invalid="invalid_mutex: something waited that is not a GIL",
            ),
        ],
        transactions=[stm_observation()],
    )


def _set_up(browser: Page) -> Page:
    browser.switch_scripts(on=True)
    browser.prefer("light")
    browser.resize(1400)
    return browser


def test_page_comes_whole_and_complains_of_nothing(browser: Page) -> None:
    """
    One request, an empty console, and all sections are there.
    """
    page = _set_up(browser)
    with _served(_full()) as (_, url):
        page.open(url)

        assert [url] == page.requests()
        assert [] == page.complaints()
        assert [
            "Traced processes",
            "Whose code keeps the GIL",
            "Processes with transactions",
            "Found, but not traced",
            "STM logs",
            "This agent",
        ] == page.evaluate("[...document.querySelectorAll('h2')].map((it) => it.textContent)")


def test_every_link_is_reached_by_tab(browser: Page) -> None:
    """
    In the order of the page, with a sign that it has the focus, and then Tab leaves the page.
    """
    page = _set_up(browser)
    with _served(_full()) as (_, url):
        page.open(url)
        walk = walked(page)

    assert tuple(range(walk.controls)) == walk.places
    assert walk.controls > 0
    assert () == walk.unseen


def test_page_brings_itself_up_to_date(browser: Page) -> None:
    """
    Everything else stays as it is: the same elements, what is marked, what was opened by hand.
    """
    page = _set_up(browser)
    source = _full()
    with _served(source) as (_, url):
        page.open(url)
        page.evaluate("window.row = document.querySelector('.targets tbody tr'), 0")
        page.evaluate("document.querySelector('details').open = true")
        page.evaluate("getSelection().selectAllChildren(row.cells[0])")
        first, *others = source.observations
        lost = replace(first.totals, at_ns=first.totals.at_ns + 30 * _S)
        source.observations = [replace(first, totals=lost), *others]
        before = page.evaluate(_WAITING)

        assert page.evaluate(_UPDATED)

        assert ["97 %", "0 %"] == [before, page.evaluate(_WAITING)]
        assert page.evaluate("row === document.querySelector('.targets tbody tr')")
        assert page.evaluate("document.querySelector('details').open")
        assert "app.py" == page.evaluate("getSelection().toString()")
        assert [] == page.complaints()


def test_page_does_so_again_and_again(browser: Page) -> None:
    """
    By its own clock, until it is told to pause.
    """
    page = _set_up(browser)
    with _served(_full(), every_s=_AT_ONCE_S) as (_, url):
        page.open(url)
        page.evaluate(
            "new Promise((done) => new MutationObserver(() => {"
            "if (document.documentElement.dataset.updates >= 3) done(); })"
            ".observe(document.documentElement, {attributes: true}))"
        )
        page.click("#pause")
        assert "Resume" == page.evaluate("document.getElementById('pause').textContent")
        paused = page.evaluate("setTimeout(() => 0, 0), document.documentElement.dataset.updates")
        page.click("#pause")
        page.evaluate(_UPDATED)

        assert int(paused) < int(page.evaluate("document.documentElement.dataset.updates"))


def test_agent_that_has_gone_is_told(browser: Page) -> None:
    """
    The last figures stay, marked as such.
    """
    page = _set_up(browser)
    with _served(_full()) as (_, url):
        page.open(url)
        assert page.evaluate(f"{_PROBLEM}.hidden")
    page.evaluate(
        f"new Promise((done) => {{ new MutationObserver(done).observe({_PROBLEM}, "
        "{attributes: true}); document.dispatchEvent(new Event('visibilitychange')); })"
    )

    assert not page.evaluate(f"{_PROBLEM}.hidden")
    words = page.evaluate(f"{_PROBLEM}.textContent")
    assert words.startswith("There are no new figures (")
    assert words.endswith("These are the last ones that came.")
    assert "app.py" == page.evaluate("document.querySelector('.targets tbody th').textContent")


def test_hostile_names_do_nothing(browser: Page) -> None:
    """
    Neither in the page nor in what it fetches.
    """
    page = _set_up(browser)
    seen = hostile().observation
    with _served(Fixed([seen])) as (_, url):
        page.open(url)
        page.evaluate("document.querySelector('.targets tbody').remove()")
        page.evaluate(_UPDATED)

        name = page.evaluate("document.querySelector('.targets tbody th').textContent")
        assert printable(EVIL) == name
        assert "undefined" == page.evaluate("typeof window.evil")
        assert 0 == page.evaluate("document.querySelectorAll('img').length")
        assert [] == page.complaints()


def test_policy_stops_what_the_page_does_not_bring(browser: Page) -> None:
    """
    Were markup to get in, it could neither run nor load anything.
    """
    page = _set_up(browser)
    with _served(_full()) as (_, url):
        page.open(url)
        page.evaluate(
            "new Promise((done) => { const made = document.createElement('img');"
            "made.onerror = done; made.src = 'http://127.0.0.1:9/x'; document.body.append(made); })"
        )
        page.evaluate(
            "(() => { const made = document.createElement('script');"
            "made.textContent = 'window.evil = 1'; document.body.append(made); })()"
        )

        assert "undefined" == page.evaluate("typeof window.evil")
        assert 2 == len([each for each in page.complaints() if "Content Security Policy" in each])


def test_page_behind_a_password_brings_itself_up_to_date(browser: Page, tmp_path: Path) -> None:
    """
    The browser sends the password that the page was asked for with.
    """
    page = _set_up(browser)
    hashed = bcrypt.hashpw(b"pass", bcrypt.gensalt(4)).decode()
    (tmp_path / "web.yml").write_text(f"basic_auth_users: {{user: {hashed}}}")
    with _served(_full(), guard=Access(str(tmp_path / "web.yml"))) as (_, url):
        page.open(url.replace("://", "://user:pass@"))

        assert page.evaluate(_UPDATED)


@pytest.mark.parametrize("width", [360, 800, 1210, 1400])
@pytest.mark.parametrize("source", [_full, lambda: Fixed([hostile().observation]), Fixed])
def test_no_window_needs_sideways_scrolling(
    browser: Page, width: int, source: Callable[[], Fixed]
) -> None:
    """
    A phone's neither.
    """
    page = _set_up(browser)
    with _served(source()) as (_, url):
        page.open(url)
        page.resize(width)

        assert 0 == page.evaluate(OVERFLOW)


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_background(browser: Page, scheme: str, width: int) -> None:
    """
    A contrast of at least 4.5 everywhere, as WCAG asks for small text.
    """
    page = _set_up(browser)
    with _served(_full()) as (_, url):
        page.open(url)
        page.prefer(scheme)
        page.resize(width)
        page.evaluate("document.querySelector('details').open = true")

        assert [] == page.evaluate(TOO_FAINT)


def test_paper_stays_light(browser: Page) -> None:
    """
    In whatever scheme the page is looked at; and there is nothing to press on it.
    """
    background = "getComputedStyle(document.body).backgroundColor"
    page = _set_up(browser)
    with _served(_full()) as (_, url):
        page.open(url)
        page.prefer("light")
        light = page.evaluate(background)
        page.prefer("dark")
        dark = page.evaluate(background)
        page.prefer("dark", media="print")

        assert light == page.evaluate(background) != dark
        assert "none" == page.evaluate("getComputedStyle(document.querySelector('#pause')).display")


def test_curves_can_be_told_from_their_background(browser: Page) -> None:
    """
    A contrast of at least 3, as WCAG asks for graphics, light and dark.
    """
    page = _set_up(browser)
    with _served(_full()) as (_, url):
        page.open(url)
        for scheme in ("light", "dark"):
            page.prefer(scheme)
            pairs = page.evaluate(
                "[...document.querySelectorAll('.curve')].map((it) => ["
                "getComputedStyle(it.querySelector('path')).fill,"
                "getComputedStyle(it).backgroundColor])"
            )
            assert len(pairs) >= 3
            assert [] == [pair for pair in pairs if _contrast(*pair) < 3]


def _contrast(*colours: str) -> float:
    dark, bright = sorted(map(_luminance, colours))
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_page_needs_no_script(browser: Page) -> None:
    """
    Without it everything is there, but for the button, and the browser loads it again by itself.
    """
    page = _set_up(browser)
    page.switch_scripts(on=False)
    with _served(_full(), every_s=1) as (_, url):
        page.open(url)

        assert "app.py" == page.evaluate("document.querySelector('.targets tbody th').textContent")
        assert page.evaluate("document.getElementById('pause').hidden")
        assert page.evaluate("document.querySelector('meta[http-equiv=refresh]') !== null")
    page.switch_scripts(on=True)
