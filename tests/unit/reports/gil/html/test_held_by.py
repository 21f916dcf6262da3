"""The table of who held the GIL in the HTML report."""

from dataclasses import replace

from gilscope.model.gil import Recording
from gilscope.reports.gil.html import report
from support.recordings.gil import with_edges, with_holders, with_native_calls
from support.reports.html_tree import parse


def _quiet(recording: Recording) -> Recording:
    seen = recording.observation
    totals = replace(seen.totals, threads=(), edges=(), slow_drops=())
    return replace(recording, observation=replace(seen, totals=totals))


def test_places_have_their_shares() -> None:
    """
    With source lines, errors, and what had been called below them.
    """
    section = parse(report.render(with_holders())).one("section", id="held-by")

    assert [
        ["crunch (app.py:4)total += sum(range(20000))", "≈ 50 %", "7 points"],
        ["Pattern.scan <café> (match.py:27)", "≈ 20 %", "6 points"],
        ["handle (app.py:13)os.read(fd, 1)", "≈ 10 %", "4 points"],
    ] == [row[:3] for row in section.rows[1:]]
    assert "no contention" not in section.text


def test_without_waits_it_says_what_that_means() -> None:
    """
    And without samples there is no such section.
    """
    quiet = parse(report.render(_quiet(with_holders()))).one("section", id="held-by")

    assert "That is no contention" in quiet.text
    assert [] == parse(report.render(with_edges())).all("section", id="held-by")


def test_calls_in_c_are_told_where_they_are_known() -> None:
    """
    Behind the state.
    """
    section = parse(report.render(with_native_calls())).one("section", id="held-by")

    calls = "longest_match < deflate (libz.so.1) < (zlib.so) < _PyObject_MakeTpCall (python3.11)"
    assert calls in section.text
