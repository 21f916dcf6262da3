"""The landing page."""

from dataclasses import replace

from gilscope.model import Refusal
from gilscope.reports import page
from recordings import PROCESS, convoy, observation


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
