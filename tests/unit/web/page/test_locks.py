"""The part of the landing page about locks."""

import re
from dataclasses import replace

from gilscope.model.locks import LockObservation
from gilscope.web.page import page
from support.recordings.locks import lock_recording

_SEEN = lock_recording().observation


def _page(observation: LockObservation) -> str:
    return str(page.render(page.Figures(locks=page.Locks([observation]))))


def test_process_has_a_row() -> None:
    """
    What it has lost, what it was idle, and the costliest places with both of their ends.
    """
    html = _page(_SEEN)
    places = (
        "0.030s object (list): append (app.py:12), held by compare (app.py:41), "
        "80 % released by sort (app.py:33)<br>"
        "0.020s lock: append (app.py:12)</td>"
    )

    assert {
        "process": "app.py",
        "pid": "4711",
        "Python": "3.14.2t",
        "state": "traced",
        "observed": "100 %",
        "overhead": "0.1 %",
        "lost lately": "",
        "total lost": "0.050s",
        "total waits": "4",
        "idle": "1.000s",
        "what is waited for, and where": places.partition("<")[0],
    } == dict(re.findall(r'data-name="([^"]+)">([^<]*)<', html))
    assert places in html
    assert "None yet" not in html


def test_figures_that_cannot_be_trusted_are_not_shown() -> None:
    """
    Their reason is.
    """
    html = _page(replace(_SEEN, invalid="its probe has gone"))

    assert "not reported: its probe has gone" in html
    assert "0.050s" not in html


def test_where_no_locks_are_traced_nothing_is_said() -> None:
    """
    As of a Python that is too old, whose GIL is traced.
    """
    heading = "Locks that threads wait for"

    assert heading in _page(_SEEN)
    assert heading not in _page(lock_recording(invalid="too old", has_totals=False).observation)
    assert heading not in str(page.render(page.Figures()))
