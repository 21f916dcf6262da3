"""Waits for locks as collapsed stacks."""

from gilscope.reports.locks.collapsed import render
from support.recordings.locks import lock_recording


def test_a_line_is_what_was_waited_for_and_where() -> None:
    """
    Outermost first; all lines add up to the time lost.
    """
    assert [
        "locks;lock;work (app.py:22);append (app.py:12) 20000000",
        "locks;object (list);work (app.py:22);append (app.py:12) 30000000",
    ] == render(lock_recording()).splitlines()


def test_of_several_processes_each_is_a_level() -> None:
    """
    Below the word that says what it is about.
    """
    first = render(lock_recording(), names_process=True).splitlines()[0]

    assert first.startswith("locks;app.py, pid 4711;lock;")


def test_what_could_not_be_traced_has_no_line() -> None:
    """
    Nor has a recording in which nothing was lost.
    """
    assert "" == render(lock_recording(invalid="too old", has_totals=False))
