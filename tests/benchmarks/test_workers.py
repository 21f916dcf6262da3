"""The bench of a thousand workers: its table, and whether a bar is missed."""

from dataclasses import replace

from bench.workers import TEXT, AgentFigures, rows_of

_AGENT = AgentFigures(
    attach_s=9.96,
    attach_cpu_s=9.0,
    idle_percent=4.0,
    private_mb=80.0,
    scrape_s=0.25,
    scrape_kb=24.6,
    series=174391,
)


def test_each_figure_stands_beside_its_bar() -> None:
    """
    In the order of the modes, with its unit.
    """
    rows, is_missed = rows_of({"contention": _AGENT, "auto": replace(_AGENT, attach_s=3.0)})

    assert not is_missed
    assert ("all are traced", "10 s", "10.0 s", "3.0 s") == rows[0]
    assert ("CPU time until then", "", "9.0 s", "9.0 s") == rows[1]
    assert ("its series", "", "174,391", "174,391") == rows[-1]


def test_a_bar_is_missed_in_any_mode() -> None:
    """
    A figure without a bar misses none.
    """
    dear = (
        replace(_AGENT, attach_s=10.01),
        replace(_AGENT, private_mb=81.0),
        replace(_AGENT, scrape_s=1.1),
        replace(_AGENT, idle_percent=5.1),
    )
    for each in dear:
        assert rows_of({"contention": _AGENT, "auto": each})[1]
    assert not rows_of({"contention": _AGENT, "auto": replace(_AGENT, scrape_kb=1e6)})[1]


def test_the_text_has_a_place_for_all_that_is_measured() -> None:
    """
    And for nothing else.
    """
    places = ("workers", "machine", "agents", "traced", "untraced")

    shown = TEXT.read_text().format(**{place: f"<{place}>" for place in places})

    assert all(f"<{place}>" in shown for place in places)
