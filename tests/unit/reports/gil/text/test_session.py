"""The text report on several processes."""

from dataclasses import replace

import pytest

from gilscope.model.gil import Recording, Refusal
from gilscope.reports.gil.text import report, session
from support.recordings.gil import convoy, session_of, with_edges


def _as(recording: Recording, pid: int) -> Recording:
    seen = recording.observation
    return replace(recording, observation=replace(seen, process=replace(seen.process, pid=pid)))


def _quiet(recording: Recording, pid: int) -> Recording:
    seen = recording.observation
    totals = replace(seen.totals, threads=(), edges=(), slow_drops=(), lost_events={})
    return _as(replace(recording, observation=replace(seen, totals=totals)), pid)


def test_sums_come_first() -> None:
    """
    Of all processes, with the share of each; then each by itself, as if it were the only one.
    """
    one, other = _as(with_edges(), 1), _as(with_edges(), 2)
    text = session.render(session_of(one, other))
    lines = text.splitlines()

    assert ["2 processes with a GIL", "2.000s in contention mode.", ""] == lines[:3]
    assert "3.880s lost waiting for the GIL in 470 waits, in 2 of them." == lines[3]
    assert ["    1.940s   50 %  app.py, pid 1, seen for 2.000s"] == lines[4:5]
    assert "Whose code kept the GIL, in all of them" in lines[:10]
    assert all(report.render(each) in text for each in (one, other))


def test_quiet_processes_are_in_one_line() -> None:
    """
    With as many names as fit, and without sections.
    """
    text = session.render(session_of(convoy(), *(_quiet(convoy(), pid) for pid in range(1, 11))))
    (line,) = [line for line in text.splitlines() if line.startswith("Lost nothing:")]

    assert line.startswith("Lost nothing: app.py, pid 1; app.py, pid 2; ")
    assert line.endswith("; app.py, pid 8; and 2 more.")
    assert 1 == text.count(", CPython ")


def test_nobody_waited() -> None:
    """
    Then there is no table, no heading, and no section.
    """
    text = session.render(session_of(_quiet(convoy(), 1), _quiet(convoy(), 2)))

    assert text.splitlines()[3:] == ["No thread of them had to wait for the GIL."]


@pytest.mark.parametrize(("left_out", "words"), [(1, "1 process that has"), (2, "2 processes")])
def test_what_is_not_seen_is_told(left_out: int, words: str) -> None:
    """
    What was given up, and what was refused with its reason.
    """
    refused = (Refusal(7, "odd.py", "no GIL", "none"),)
    text = session.render(replace(session_of(convoy()), left_out=left_out, refusals=refused))

    assert f"Left out, because there were too many: {words}" in text
    assert "Not traced: odd.py, pid 7: no GIL.\n" in text
