"""Who keeps whom waiting, on the landing page."""

import re
from dataclasses import replace

from gilscope.model.application import EVERYBODYS
from gilscope.model.gil import Tally
from gilscope.model.moment.hold_state import State
from gilscope.series.lately import Held, Lately, RecentHolder, RecentPair, SlowHolder
from gilscope.verdict.change_words import changes_so_far
from gilscope.web.page import page
from support.recordings.gil import MS, PROCESS, convoy, observation, with_edges

_S = 1000 * MS
_PAIR = RecentPair("handle (app.py:13)", "crunch (app.py:4)", "GIL_CONVOY", 30 * _S)
_COLLECTING = ((State.GC, "", 3), (State.PYTHON, "", 1))
_READING = ((State.SYSCALL, "read on fd 3", 1),)
_HOLDER = RecentHolder("price (shop.py:7)", "crunch (app.py:4)", 36 * _S, _COLLECTING)
_SLOW = SlowHolder("scan (match.py:27)", Tally(2600 * MS, 12), longest_ns=410 * MS)
_LATELY = Lately(
    period_ns=60 * _S,
    is_all=False,
    lost_ns=40 * _S,
    holders=(_HOLDER,),
    pairs=(_PAIR,),
    slow_holders=(_SLOW,),
)


def _page(lately: Lately) -> str:
    return page.render(page.Figures([convoy().observation], [], lately={PROCESS.pid: lately}))


def _rows(html: str) -> list[list[tuple[str, str]]]:
    """Return the cells of the tables of the section, each with its heading."""
    section = html.partition("<h2>Whose code keeps the GIL</h2>")[2]
    return [
        re.findall(r'data-name="([^"]+)">([^<]*)<', row)
        for row in re.findall("<tr>.*?</tr>", section)
    ]


def test_pairs_come_with_what_they_cost_lately() -> None:
    """
    30 of 40 s in a minute; the rest is that of all other pairs.
    """
    html = _page(_LATELY)

    _, _, _, _, pair, others, _, _ = _rows(html)
    assert [
        ("lost per second", "500 ms"),
        ("of the loss", "75 %"),
        ("kind", "GIL_CONVOY"),
        ("waiter", "handle (app.py:13)"),
        ("held by", "crunch (app.py:4)"),
    ] == pair
    assert ["167 ms", "25 %", "", "all other pairs", ""] == [cell for _, cell in others]
    assert "Its threads have lost 667 ms per second in the last 60 s." in html


def test_code_comes_first() -> None:
    """
    By the place in the application, with what it had called.
    """
    _, holder, others, *_ = _rows(_page(_LATELY))

    assert [
        ("lost per second", "600 ms"),
        ("of the loss", "90 %"),
        ("code that keeps the GIL", "price (shop.py:7)"),
        ("in", "crunch (app.py:4)"),
        ("why", "≈ 75 % garbage collection, 25 % Python code"),
    ] == holder
    assert ["66.7 ms", "10 %", "all other code", "", ""] == [cell for _, cell in others]


def test_each_process_leads_to_its_report() -> None:
    """
    Of the same last minutes, with what a table has no room for.
    """
    assert '<a href="report?pid=4711">Its last 5 minutes</a>' in _page(_LATELY)


def test_who_holds_it_is_told_without_waits_too() -> None:
    """
    A busy thread, or a blocked event loop, that nobody waits for.
    """
    held = Held("handle (app.py:13)", "dumps (json/__init__.py:231)", 0.912, 0.043, _READING)
    html = _page(replace(_LATELY, lost_ns=0, holders=(), pairs=(), slow_holders=(), held=(held,)))

    assert [
        ("held", "≈ 91 %"),
        ("give or take", "4 points"),
        ("code that holds the GIL", "handle (app.py:13)"),
        ("in", "dumps (json/__init__.py:231)"),
        ("doing", "≈ 100 % a system call (read on fd 3)"),
    ] == _rows(html)[-1]


def test_slow_holders_come_with_all_they_have_cost() -> None:
    """
    They are rare: what they did an hour ago still matters.
    """
    html = _page(_LATELY)

    assert [
        ("drop latency", "2.6 s"),
        ("longest", "410 ms"),
        ("times", "12"),
        ("unanswered for", ""),
        ("holder", "scan (match.py:27)"),
    ] == _rows(html)[-1]
    assert "over 10 ms when asked, since the process is traced" in html


def test_request_in_flight_has_its_time() -> None:
    """
    The call has not returned yet.
    """
    slow = replace(_SLOW, in_flight_ns=12 * _S)

    assert ("unanswered for", "12 s") in _rows(_page(replace(_LATELY, slow_holders=(slow,))))[-1]


def test_period_is_said_in_words() -> None:
    """
    Without a look a minute ago it is all the time.
    """
    minutes = replace(_LATELY, period_ns=780 * _S, is_all=True)
    hours = replace(_LATELY, period_ns=30 * 3600 * _S, is_all=True)

    assert "in the 13 min since it is traced." in _page(minutes)
    assert "in the 30 h since it is traced." in _page(hours)


def test_nothing_lost_is_said_where_something_was_slow() -> None:
    """
    A process that has neither is not spoken of.
    """
    quiet = replace(_LATELY, lost_ns=0, holders=(), pairs=())

    assert "Its threads have lost nothing in the last 60 s." in _page(quiet)
    assert "Whose code keeps the GIL" not in _page(replace(quiet, slow_holders=()))
    assert "Whose code keeps the GIL" not in page.render(page.Figures([convoy().observation], []))


def test_worst_process_comes_first_and_ended_ones_are_left_out() -> None:
    """
    By what was lost lately; only so many are shown.
    """
    seen = [
        replace(observation(), process=replace(PROCESS, pid=pid), ended=pid == 99)
        for pid in range(70, 100)
    ]
    lately = {pid: replace(_LATELY, lost_ns=pid * _S) for pid in range(70, 100)}

    html = page.render(page.Figures(seen, [], lately=lately))

    pids = re.findall(r'<h3>app.py <span class="quiet">(\d+)<', html)
    assert [str(pid) for pid in range(98, 78, -1)] == pids
    assert "9 more that have lost less are left out here." in html


def test_names_from_the_program_are_escaped() -> None:
    """
    A function can be called anything.
    """
    nasty = '<script>"&'
    lately = replace(
        _LATELY,
        holders=(replace(_HOLDER, place=nasty, inner=nasty),),
        pairs=(replace(_PAIR, waiter=nasty, holder=nasty),),
        slow_holders=(replace(_SLOW, holder=nasty),),
        held=(Held(nasty, nasty, 0.5, 0.1),),
    )
    named = replace(convoy().observation, process=replace(PROCESS, name=nasty))

    html = page.main_part(page.Figures([named], [], lately={PROCESS.pid: lately}))

    assert "<script>" not in html
    assert 9 == html.count("&lt;script&gt;&#34;&amp;")


def test_page_says_what_a_change_would_bring() -> None:
    """
    Of all the time for which the process is traced, and if what; nothing where there is nothing.
    """
    seen = with_edges().observation
    html = page.render(page.Figures([seen], [], lately={PROCESS.pid: _LATELY}))
    changes = html.partition("What a change would bring")[2].partition("</ul>")[0]

    assert [change.what for change in changes_so_far(seen, EVERYBODYS)] == re.findall(
        "<li>(.*?): ", changes
    )
    assert "sys.setswitchinterval(0.0005) instead of 0.005" in changes
    assert '<span class="quiet">if threads wait for as many turns of others as now' in changes
    quiet = page.render(page.Figures([observation()], [], lately={PROCESS.pid: _LATELY}))
    assert "What a change would bring" not in quiet
