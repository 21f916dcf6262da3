"""The part of the landing page about transactions."""

import re

from gilscope.model.transactions import Library, Method, StmObservation
from gilscope.web.page import page
from support.recordings.transactions import stm_observation


def _cells(observation: StmObservation) -> dict[str, str]:
    html = page.render(page.Figures(transactions=page.Transactions([observation])))
    return dict(re.findall(r'data-name="([^"]+)">([^<]*)<', html))


def test_process_has_a_row() -> None:
    """
    Who it is, how it is traced, and what its aborts come to.
    """
    assert {
        "process": "app.py",
        "pid": "4711",
        "library": "PyPy-STM or another RPython program",
        "state": "traced by every event that it logs",
        "observed": "100 %",
        "overhead": "2 %",
        "commits": "30",
        "aborts": "10",
        "aborted": "25 %",
        "lost lately": "",
        "lost in aborts": "0.010s",
        "paused": "0.020s",
        "what holds it up": "STM_WAIT_FREE_SEGMENT 0.020s (4x)",
    } == _cells(stm_observation())


def test_most_frequent_reasons_are_told() -> None:
    """
    Three of them at the most, behind the kind of wait that took the most time.
    """
    html = page.render(page.Figures(transactions=page.Transactions([stm_observation()])))

    assert "(4x)<br>inevitable 4x time<br>inevitable 2x other<br>inevitable 1x open</td>" in html


def test_what_is_not_seen_is_empty() -> None:
    """
    Without restarts there are no aborts to show, which is not none.
    """
    cells = _cells(stm_observation(Library.LIBITM, Method.NAMES))

    assert ("30", "", "", "", "") == (
        cells["commits"],
        cells["aborts"],
        cells["aborted"],
        cells["lost in aborts"],
        cells["paused"],
    )


def test_there_is_no_table_without_such_processes() -> None:
    """
    Most hosts have none.
    """
    assert "transactions" not in page.render(page.Figures())
    assert "not reported: gone" in page.render(
        page.Figures(transactions=page.Transactions([stm_observation(invalid="gone")]))
    )
