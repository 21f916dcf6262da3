"""The landing page."""

import base64
import hashlib
import re
from dataclasses import replace

from gilscope.model.gil import GilObservation, Refusal
from gilscope.reports.html.markup import EMPTY
from gilscope.series.recent import Curve, Stretch
from gilscope.web.page import page
from gilscope.web.page.agent import SelfPortrait
from support.recordings.gil import MS, PROCESS, convoy, full_mode, observation
from support.reports.scraped import AGENT

_S = 1000 * MS


def _curve(lost: float, held: float | None = None) -> Curve:
    """Return five seconds of it, after five in which there was nothing."""
    stretches = (
        Stretch(10 * _S, 5 * _S, 0.0, None if held is None else 0.0),
        Stretch(5 * _S, 0, lost, held),
    )
    return Curve(lost, held, stretches)


def test_page_lists_targets_worst_first() -> None:
    """
    The process that has lost most time stands on top.
    """
    idle = replace(observation(), process=replace(PROCESS, name="idle.py", pid=1))

    html = page.render(page.Figures([idle, convoy().observation], []))

    assert html.index("app.py") < html.index("idle.py")
    assert "1.940s" in html


def test_what_was_lost_lately_counts_more() -> None:
    """
    Of two, the one that suffers now is above the one that once did.
    """
    now = replace(observation(), process=replace(PROCESS, name="now.py", pid=1))
    once = convoy().observation
    curves = {1: _curve(0.1), PROCESS.pid: _curve(0.0)}

    html = page.render(page.Figures([once, now], curves=curves))

    assert html.index("now.py") < html.index("app.py")


def test_page_escapes_what_processes_call_themselves() -> None:
    """
    A command line can hold markup.
    """
    nasty = replace(observation(), process=replace(PROCESS, name="<script>alert(1)</script>"))

    html = page.main_part(page.Figures([nasty], [Refusal(7, "<b>", "<i>reason", "<u>remedy")]))

    assert "<script>" not in html
    assert "<b>" not in html
    assert "&lt;i&gt;reason" in html


def test_page_says_why_figures_are_missing() -> None:
    """
    Invalid and refused processes show their reasons instead of numbers.
    """
    spoilt = replace(convoy().observation, invalid="the probes are in the wrong place")

    html = page.render(
        page.Figures([spoilt], [Refusal(7, "old.py", "CPython 3.5 is too old", "Update it.")])
    )

    assert "not reported: the probes are in the wrong place" in html
    assert "1.940s" not in html
    assert "CPython 3.5 is too old" in html
    assert "Update it." in html


def test_page_loads_nothing_from_elsewhere() -> None:
    """
    It works without a network.
    """
    html = page.render(page.Figures([convoy().observation], []))

    assert "://" not in html
    assert "src=" not in html


def _cells(seen: GilObservation, curve: Curve | None = None) -> dict[str, str]:
    curves = {} if curve is None else {seen.process.pid: curve}
    html = page.main_part(page.Figures([seen], curves=curves))
    return dict(re.findall(r'data-name="([^"]+)">([^<]*)<', html))


def test_row_tells_how_the_lock_is_held_and_what_tracing_costs() -> None:
    """
    Auto mode: held for 80 % of the time lately, 0.2 of 2 s covered by windows, a hold in flight.
    """
    seen = full_mode().observation

    cells = _cells(
        replace(seen, totals=replace(seen.totals, observed_ns=200 * MS)), _curve(1.91, 0.8)
    )

    assert ["191 %", "≈ 80 %", "3 ms", "10 %", "0.13 %"] == [
        cells[name] for name in ("waiting", "GIL held", "longest hold now", "windows", "overhead")
    ]


def test_what_the_mode_cannot_see_is_left_empty() -> None:
    """
    Contention mode has no windows.
    """
    cells = _cells(convoy().observation)

    names = ("waiting", "GIL held", "longest hold now", "windows", "overhead")
    assert [""] * 5 == [cells[name] for name in names]
    assert "3 ms" == cells["longest wait now"]


def test_rows_have_as_many_cells_as_there_are_headings() -> None:
    """
    Also that of a process without figures.
    """
    for seen in (full_mode().observation, replace(full_mode().observation, invalid="why")):
        html = page.render(page.Figures([seen], []))
        assert html.count('<th scope="col"') == html.count("data-name=")


def _facts(portrait: SelfPortrait) -> dict[str, str]:
    html = page.main_part(page.Figures([convoy().observation], [], portrait))
    html = html.partition("<h2>This agent</h2>")[2]
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html))


def test_agent_says_what_it_uses_itself() -> None:
    """
    Rates are those since the start, 1000 s ago.
    """
    assert {
        "memory": "29.5 MB private, 48.0 MB resident",
        "CPU": "0.3 % of a core on average, 10 % of it to sample locks",
        "traps": "5 a second on average, 5000 total",
        "cost of a trap": "540 ns (hold), 8.9 us (hold, single-stepped), 700 ns (wait); measured",
        "maps": "1.3 MB in the kernel, threads the fullest with 0.92 %",
        "lost events": "2",
        "last scrape": "took 4.2 ms",
    } == _facts(SelfPortrait(AGENT, last_scrape_ns=4_200_000))


def test_agent_warns_of_what_loses_events() -> None:
    """
    A map that is nearly full, and programs that the kernel left out.
    """
    threads = replace(AGENT.tables[0], entries=60000)
    facts = _facts(
        SelfPortrait(
            replace(AGENT, tables=(threads,), bpf_misses=3, is_measured=False),
            last_scrape_ns=None,
        )
    )

    assert facts["maps"].endswith('<span class="bad">threads the fullest with 92 %</span>')
    assert '<span class="bad">3 runs of a program</span>' == facts["left out by the kernel"]
    assert facts["cost of a trap"].endswith("; assumed")
    assert "last scrape" not in facts


def test_policy_lets_nothing_but_the_page_itself_act() -> None:
    """
    The style and the script are those whose digests are in the header.
    """
    html = page.render(page.Figures())
    (style,) = re.findall("<style>(.*?)</style>", html, re.DOTALL)
    (script,) = re.findall("<script>(.*?)</script>", html, re.DOTALL)

    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    assert digests == re.findall("'sha256-([^']+)'", page.POLICY)
    assert page.POLICY.startswith("default-src 'none'; ")
    assert "unsafe" not in page.POLICY
    assert "style=" not in html


def test_without_scripts_the_page_comes_again() -> None:
    """
    At most once a second, for a browser counts in whole ones.
    """
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in page.document(EMPTY)
    assert 'http-equiv="refresh" content="1"' in page.document(EMPTY, every_s=0.1)
    assert '<main data-every-ms="100">' in page.document(EMPTY, every_s=0.1)


def test_page_without_processes_says_what_to_do() -> None:
    """
    Nobody is left with an empty table.
    """
    html = page.main_part(page.Figures())

    assert "<h2>Traced processes</h2>\n<p>None yet." in html
    assert "gilscope doctor -p PID" in html
    assert "<table" not in html
