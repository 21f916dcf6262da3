"""The reports on transactions of live processes."""

import json
from dataclasses import replace

import pytest

from gilscope.model.transactions import Library, Method
from gilscope.naming.transaction_words import LIBRARY_WORDS, METHOD_WORDS
from gilscope.reports.transactions import json as transactions_json
from gilscope.reports.transactions import text as transactions_text
from gilscope.reports.transactions.words import LOST_WORDS
from gilscope.transactions.abi import StmLoss
from support.recordings.transactions import stm_recording

_RPYTHON = (Method.EVENTS, Method.EVENTS_BASIC, Method.ENTRIES)


def test_text_report() -> None:
    """
    Sums, waits, reasons, threads, histograms, and what was lost.
    """
    report = transactions_text.render(stm_recording())

    for line in (
        "app.py, pid 4711, PyPy-STM or another RPython program",
        "2.000s. Seen by every event that it logs, in /usr/bin/pypy-stm (build bbbbbbbbbbbb).",
        "30 transactions were committed, 15 a second, in 2 ms on average.",
        "0.010s lost in aborts: 10 tries were aborted, 25 % of all.",
        "Conflicts that were logged: 9.",
        "    0.020s paused (4x STM_WAIT_FREE_SEGMENT)",
        "        4x time",
        "        2x other",
        "        16 committed    0.030s          5 aborted    0.005s   12 worker",
        "How long committed transactions ran",
        "Tracing cost the process about 4 ms of CPU time (200 traps), 2 % of what it used itself.",
        "         1 transaction begun before the recording, counted without a time",
    ):
        assert line in report.splitlines()
    assert "What is not seen" not in report


def test_text_report_on_libitm() -> None:
    """
    Restarts by reason, cancelled transactions, and what the figures do not say.
    """
    report = transactions_text.render(stm_recording(Library.LIBITM, Method.RESTARTS))

    assert "Restarts, by reason\n        7x LOCKED_READ\n" in report
    assert "Transactions that the program itself cancelled: 3." in report
    assert "How long committed transactions took" in report
    assert "Hardware transactions cannot pass a probe" in report


def test_text_report_says_that_it_was_not_seen_to_the_end() -> None:
    """
    The reason stands in front of the figures, which hold up to then.
    """
    report = transactions_text.render(stm_recording(invalid="the log has ended"))

    assert "It was not seen to the end: the log has ended.\n" in report
    assert "30 transactions were committed" in report


def test_what_windows_have_covered_is_told() -> None:
    """
    Half a second of two: the rate is that of the half second, and the share is said.
    """
    whole = stm_recording()
    seen = replace(whole.observation, observed_ns=500_000_000, is_whole=False)
    recording = replace(whole, observation=seen)
    report = transactions_text.render(recording)

    assert "Seen for 0.500s in windows at random, 25 % of the time" in report
    assert "60 a second" in report
    assert "windows at random" not in transactions_text.render(whole)
    assert 0.5 == transactions_json.report(recording)["observed_s"]


@pytest.mark.parametrize("method", _RPYTHON)
def test_json_has_null_for_what_is_not_seen(method: Method) -> None:
    """
    Every method has the same keys, and a figure is there if the method sees it.
    """
    report = json.loads(transactions_json.render(stm_recording(Library.RPYTHON, method)))
    totals = report["totals"]

    assert (30, 10, None) == (totals["commits"], totals["aborts"], totals["cancels"])
    assert (totals["committed_s"] is not None) == method.has_commit_times
    assert (report["histograms"]["transaction"] is not None) == method.has_commit_times
    assert (report["waits"] is not None) == method.has_waits
    assert totals["abort_cost_includes_waits"] is (False if method.has_abort_costs else None)
    assert method.has_abort_costs == (totals["abort_cost_s"] is not None)
    assert method.has_commit_times == (report["threads"][0]["committed_s"] is not None)


def test_everything_has_words() -> None:
    """
    Each library, method and loss is put into words.
    """
    assert set(Library) == set(LIBRARY_WORDS)
    assert set(Method) == set(METHOD_WORDS)
    assert {loss.value for loss in StmLoss} == set(LOST_WORDS)
