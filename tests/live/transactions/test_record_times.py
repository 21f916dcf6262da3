"""Times that ``gilscope record`` gives transactions, against the clock of their program."""

import json
from pathlib import Path

import pytest

from support.tracing.counted_transactions import recorded
from support.tracing.transactions import ITM, RPYTHON, built, running

pytestmark = pytest.mark.live

_THREADS, _ROUNDS = 3, 200
_COMMITS, _CANCELS = 3 * _THREADS * _ROUNDS, _THREADS * _ROUNDS
_VISIBLE = [name for name in ITM if name != "static-stripped"]
_SIZES = (str(_THREADS), str(_ROUNDS))


@pytest.mark.parametrize("name", _VISIBLE)
def test_restarts_do_not_disturb_the_count(name: str, tmp_path: Path) -> None:
    """
    Where threads write to the same places a try that fails, at the commit too, is no commit.
    """
    program_file = built(tmp_path, "itm", ITM[name])
    with running(program_file, *_SIZES, "fight", ITM_DEFAULT_METHOD="ml_wt") as program:
        report, _ = recorded(program, rounds=5)
        assert 0 == program.finish()
    totals = report["totals"]

    assert (5 * _COMMITS, 5 * _CANCELS) == (totals["commits"], totals["cancels"])
    assert {} == totals["lost_events"]
    assert "restarts" == report["process"]["method"]
    assert {"LOCKED_READ", "LOCKED_WRITE"} & set(report["restarts"])
    assert totals["aborts"] == sum(report["restarts"].values())
    assert totals["aborts"] == sum(count for _, count in report["histograms"]["abort_cost"])
    assert 0 < totals["abort_cost_s"] < totals["committed_s"]


@pytest.mark.parametrize("name", RPYTHON)
def test_logging_program_is_seen_event_by_event(name: str, tmp_path: Path) -> None:
    """
    With the log on, counts are exact and times are those that the program has measured itself.
    """
    with running(built(tmp_path, "rpython", RPYTHON[name]), "2", "50", "log") as program:
        report, answer = recorded(program)
        assert 0 == program.finish()
    totals, truth = report["totals"], json.loads(answer)

    assert "events" == report["process"]["method"]
    # The last one of each thread is committed by the main thread, and counts for who began it.
    assert (102, 100, 100) == (totals["commits"], totals["aborts"], totals["conflicts"])
    assert [51, 51] == [thread["commits"] for thread in report["threads"]]
    assert {} == totals["lost_events"]
    assert totals["abort_cost_includes_waits"] is False
    for name_of_truth, found_s in (
        ("committed_ns", totals["committed_s"]),
        ("aborted_ns", totals["abort_cost_s"]),
        ("free_segment_ns", report["waits"]["STM_WAIT_FREE_SEGMENT"]["wait_s"]),
        ("other_inevitable_ns", report["waits"]["STM_WAIT_OTHER_INEVITABLE"]["wait_s"]),
    ):
        # On a machine that stalls, the program reads its clock elsewhere than the probe does.
        assert found_s == pytest.approx(truth[name_of_truth] / 1e9, rel=0.25), name_of_truth
    assert 102 == report["waits"]["STM_WAIT_FREE_SEGMENT"]["waits"]
    assert 200 == report["waits"]["STM_WAIT_OTHER_INEVITABLE"]["waits"]
