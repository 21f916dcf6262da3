"""The locks of a live process as Markdown."""

from gilscope.reports.locks.markdown import render
from support.recordings.locks import lock_recording

_WHOLE = """\
### Locks: 0.050s lost waiting, 3 % of the time of first

app.py, pid 4711, CPython 3.14.2t: 1.000s. Besides, threads were idle for 1.000s.

| lock, and where it was waited for | lost | waits | longest |
| --- | ---: | ---: | ---: |
| object (list): append (app.py:12), held by compare (app.py:41), \
80 % released by sort (app.py:33) | 0.030s | 2 | 24 ms |
| lock: append (app.py:12) | 0.020s | 2 | 20 ms |

| stop of the world, and where it was asked for | took | stops | longest |
| --- | ---: | ---: | ---: |
| garbage collection: append (app.py:12) | 0.010s | 5 | 5 ms |
| another cause: sort (app.py:33) | 0.002s | 1 | 1 ms |

- The world was stopped 6 times a second, 1 % of the time; the longest stop took 5 ms.
- Who takes a lock while it is free is not seen, nor what is tried without a lock.
- Not counted in full: 1 sleep begun before the recording, not counted.
"""


def test_answer_comes_first_and_a_table_follows() -> None:
    """
    With both ends of the waits.
    """
    assert render(lock_recording()) == _WHOLE


def test_what_could_not_be_traced_has_its_reason() -> None:
    """
    And no figure.
    """
    shown = render(lock_recording(invalid="it is too old", has_totals=False))

    assert (
        "### Locks: they were not traced\n\napp.py, pid 4711, CPython 3.14.2t: it is too old.\n"
        == (shown)
    )
