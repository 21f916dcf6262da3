"""A PyPy-STM with more threads than segments: every event is counted, and every time is its own.

Counts are compared exactly. Times are compared with brackets: the program reads the clock before
and after it gives an event away, so what is measured lies in between, whatever the machine does.
"""

from pathlib import Path

import pytest

from support.tracing.counted_transactions import recorded
from support.tracing.stmgc import STMGC, assert_is_within, truth_of
from support.tracing.transactions import built, running

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_SIZES = ("12", "20")
_CERTAIN = {
    "C7": ("STM_WAIT_FREE_SEGMENT", "STM_WAIT_CONTENTION"),
    "E16": ("STM_WAIT_FREE_SEGMENT", "STM_WAIT_OTHER_INEVITABLE", "STM_WAIT_SYNCING"),
}
"""Waits that cannot but happen, however the threads are scheduled."""


@pytest.mark.parametrize("name", STMGC)
def test_every_event_of_many_threads_is_counted(name: str, tmp_path: Path) -> None:
    """
    Commits, aborts, conflicts, waits by kind and collections, by thread too; and their times.
    """
    with running(built(tmp_path, "stmgc", STMGC[name]), *_SIZES, "log") as program:
        report, answer = recorded(program)
        assert 0 == program.finish()
    truth, totals = truth_of(answer), report["totals"]
    numbering = name.partition("-")[0]

    assert ("events", numbering) == (report["process"]["method"], report["process"]["numbering"])
    assert (truth["committed"]["count"], truth["aborted"]["count"], truth["conflicts"]) == (
        totals["commits"],
        totals["aborts"],
        totals["conflicts"],
    )
    assert {} == totals["lost_events"]
    assert_is_within(totals["committed_s"], truth["committed"], "committed")
    assert_is_within(totals["abort_cost_s"], truth["aborted"], "aborted")
    assert all(truth[kind]["count"] for kind in _CERTAIN[numbering])
    for kind, wait in report["waits"].items():
        assert truth[kind]["count"] == wait["waits"], kind
        assert_is_within(wait["wait_s"], truth[kind], kind)
    for generation, collected in report["collections"].items():
        assert truth[generation]["count"] == collected["gcs"] > 0, generation
        assert_is_within(collected["gc_s"], truth[generation], generation)
    # A transaction that another thread has committed is that of the thread that began it.
    assert numbering == "C7" or truth["taken_over"] > 0
    assert truth["threads"] == {
        str(thread["tid"]): [thread["commits"], thread["aborts"]] for thread in report["threads"]
    }


@pytest.mark.parametrize("name", STMGC)
def test_without_a_log_nothing_is_counted_too_often(name: str, tmp_path: Path) -> None:
    """
    Commits are exact, and aborts too where they have a name; nothing says what they have cost.

    What has called is the reason where the program gives none: the function, or its place.
    """
    with running(built(tmp_path, "stmgc", STMGC[name]), *_SIZES) as program:
        report, answer = recorded(program)
        assert 0 == program.finish()
    truth, totals = truth_of(answer), report["totals"]
    is_c7 = name.startswith("C7")
    reasons = report["inevitable"]
    without = {reason: count for reason, count in reasons.items() if reason.startswith("at ")}

    assert ("begins" if is_c7 else "entries") == report["process"]["method"]
    assert truth["committed"]["count"] == truth["began"] == totals["commits"]
    assert (None if is_c7 else truth["aborted"]["count"]) == totals["aborts"]
    assert (None, None, None) == (totals["abort_cost_s"], totals["committed_s"], report["waits"])
    assert {} == totals["lost_events"]
    assert truth["with_reason"] == sum(reasons.values()) - sum(without.values())
    assert truth["without_reason"] == sum(without.values())
    if not is_c7 and "stripped" not in name:
        assert {"at call_write", "at call_select"} == set(without)
    elif not is_c7:
        assert 2 == len([place for place in without if place.startswith("at stmgc+0x")])
