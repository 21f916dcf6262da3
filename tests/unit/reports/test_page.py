"""The landing page."""

import re
from dataclasses import replace

from gilscope.model import Observation, Refusal
from gilscope.reports import page
from gilscope.reports.agent_section import SelfPortrait
from recordings import MS, PROCESS, convoy, full_mode, observation
from unit.collectors.scraped import AGENT


def test_page_lists_targets_worst_first() -> None:
    """
    The process that has lost most time stands on top.
    """
    idle = replace(observation(), process=replace(PROCESS, name="idle.py", pid=1))

    html = page.render([idle, convoy().observation], [])

    assert html.index("app.py") < html.index("idle.py")
    assert "1.940s" in html


def test_page_escapes_what_processes_call_themselves() -> None:
    """
    A command line can hold markup.
    """
    nasty = replace(observation(), process=replace(PROCESS, name="<script>alert(1)</script>"))

    html = page.render([nasty], [Refusal(7, "<b>", "<i>reason", "<u>remedy")])

    assert "<script>" not in html
    assert "<b>" not in html
    assert "&lt;i&gt;reason" in html


def test_page_says_why_figures_are_missing() -> None:
    """
    Invalid and refused processes show their reasons instead of numbers.
    """
    spoilt = replace(convoy().observation, invalid="the probes are in the wrong place")

    html = page.render([spoilt], [Refusal(7, "old.py", "CPython 3.7 is too old", "Update it.")])

    assert "not reported: the probes are in the wrong place" in html
    assert "1.940s" not in html
    assert "CPython 3.7 is too old" in html
    assert "Update it." in html


def test_page_loads_nothing_from_elsewhere() -> None:
    """
    It works without a network.
    """
    html = page.render([convoy().observation], [])

    assert "http" not in html.replace("healthz", "")
    assert "src=" not in html


def _cells(seen: Observation) -> dict[str, str]:
    return dict(re.findall(r'data-name="([^"]+)">([^<]*)<', page.render([seen], [])))


def test_row_tells_how_the_lock_is_held_and_what_tracing_costs() -> None:
    """
    Auto mode: 1.6 of 2 s held, 0.2 s of them covered by windows, one hold in flight.
    """
    seen = full_mode().observation
    lock = replace(seen.totals.gils[0], held_ns=1600 * MS)

    cells = _cells(replace(seen, totals=replace(seen.totals, gils=(lock,), observed_ns=200 * MS)))

    assert ["80 %", "3 ms", "10 %", "0.13 %"] == [
        cells[name] for name in ("held", "longest hold now", "windows", "overhead")
    ]


def test_what_the_mode_cannot_see_is_left_empty() -> None:
    """
    Contention mode has no windows.
    """
    cells = _cells(convoy().observation)

    assert [""] * 4 == [cells[name] for name in ("held", "longest hold now", "windows", "overhead")]
    assert "3 ms" == cells["longest wait now"]


def test_rows_have_as_many_cells_as_there_are_headings() -> None:
    """
    Also that of a process without figures.
    """
    for seen in (full_mode().observation, replace(full_mode().observation, invalid="why")):
        html = page.render([seen], [])
        assert html.count("<th ") == html.count("<td")


def _facts(portrait: SelfPortrait) -> dict[str, str]:
    html = page.render([convoy().observation], [], portrait)
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html))


def test_agent_says_what_it_uses_itself() -> None:
    """
    Rates are those since the start, 1000 s ago.
    """
    assert {
        "memory": "29.5 MB private, 48.0 MB resident",
        "CPU": "0.3 % of a core on average, 10 % of it to look at locks",
        "traps": "5 a second on average, 5000 in all",
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
