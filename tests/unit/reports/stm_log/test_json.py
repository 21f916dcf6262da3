"""The report on STM logs for programs."""

import json
from typing import Any

from gilscope.model.stm_log import LogGroup, StmReport
from gilscope.reports.stm_log import json as stm_log_json
from gilscope.stm_log.merge import merge
from gilscope.stm_log.reader import Reading
from support.stm_log.reading import file_of, report_of
from support.stm_log.writer import MS, LogWriter, marker


def _writer() -> LogWriter:
    writer = LogWriter().add(0, 1, "START").add(3 * MS, 1, "WRITE_READ", marker(3))
    return writer.add(4 * MS, 1, "ABORT")


def _report(*, is_original: bool = False) -> dict[str, Any]:
    file = file_of(_writer().content, Reading(is_original=is_original))
    found: dict[str, Any] = json.loads(stm_log_json.render(report_of(file)))
    return found


def test_whole_report() -> None:
    """
    One object for the file, with all that is known of it.
    """
    over_time = {"begin_s": 5000.0, "step_s": 0.000016384}
    only_last = {**over_time, "counts": [0] * 244 + [1]}

    assert {
        "version": 1,
        "files": {
            "app.log": {
                "bytes": len(_writer().content),
                "layout": "L8",
                "events_table": "E16",
                "records": 3,
                "counts": {
                    "STM_TRANSACTION_START": 1,
                    "STM_TRANSACTION_ABORT": 1,
                    "STM_CONTENTION_WRITE_READ": 1,
                },
                "with_marker": {"STM_CONTENTION_WRITE_READ": 1},
                "threads": 1,
                "begin_s": 5000.0,
                "span_s": 0.004,
                "cut_tail_bytes": 0,
                "backward_timestamps": 0,
                "semantics": "S2",
                "corrected": True,
                "totals": {
                    "total_time_s": 0.004,
                    "contentions": 1,
                    "cpu_time_s": 0.004,
                    "committed_s": 0.0,
                    "aborted_s": 0.004,
                    "paused_s": 0.0,
                    "gc_minor_s": 0.0,
                    "gc_major_s": 0.0,
                    "commits": 0,
                    "aborts": 1,
                    "detached_s": 0.0,
                    "paused_outside_s": 0.0,
                    "unfinished_s": 0.0,
                    "unexplained_s": 0.0,
                    "unexplained_aborts": 0,
                    "unlogged_commits_s": 0.0,
                    "unlogged_commits": 0,
                    "waits": {},
                },
                "commits_over_time": {**over_time, "counts": []},
                "aborts_over_time": only_last,
                "entries": [
                    {
                        "lost_s": 0.004,
                        "paused_s": 0.0,
                        "count": 1,
                        "kind": "STM_CONTENTION_WRITE_READ",
                        "markers": ['File "app.py", line 3, in f'],
                        "rest": False,
                        "over_time": {**over_time, "counts": [0] * 183 + [1]},
                    }
                ],
                "gap": None,
                "after_gap": None,
            }
        },
        "merged": [],
    } == _report()


def test_what_the_original_does_not_know_is_null() -> None:
    """
    It is not measured, which is not the same as nothing.
    """
    (log,) = _report(is_original=True)["files"].values()
    unknown = {key for key, value in log["totals"].items() if value is None}

    assert {
        "cpu_time_s",
        "detached_s",
        "paused_outside_s",
        "unfinished_s",
        "unexplained_s",
        "unexplained_aborts",
        "unlogged_commits_s",
        "unlogged_commits",
        "waits",
    } == unknown
    assert not log["corrected"]


def test_what_s0_does_not_know_is_null() -> None:
    """
    It has one time of transactions.
    """
    content = LogWriter("L7").add(0, 1, "START").add(MS, 1, "COMMIT").content
    file = file_of(content, Reading(semantics="S0"))
    totals = stm_log_json.report(report_of(file))["files"]["app.log"]["totals"]

    assert {"total_time_s": 0.001, "contentions": 0, "cpu_time_s": 0.001} == {
        key: value for key, value in totals.items() if value is not None
    }


def test_garbage_at_the_end_is_a_gap_with_nothing_behind() -> None:
    """
    Where it is, how much, and that reading ended there.
    """
    content = _writer().content
    (log,) = stm_log_json.report(report_of(file_of(content + b"\0" * 40 + b"\xff" * 60)))[
        "files"
    ].values()

    assert {
        "offset": len(content),
        "nul_bytes": 40,
        "partial_record_bytes": 60,
        "resync_offset": None,
    } == log["gap"]
    assert log["after_gap"] is None


def test_merged_logs_are_told_beside_their_files() -> None:
    """
    Each file for itself, and the sum by the names of its parts.
    """
    files = tuple(file_of(_writer().content, name=name) for name in ("a.log", "a.log.fork3"))
    logs = tuple(file.logs[0] for file in files)
    report = stm_log_json.report(StmReport(files, (LogGroup(merge(logs), logs),), {}, None))
    (merged,) = report["merged"]

    assert ["a.log", "a.log.fork3"] == list(report["files"]) == merged["names"]
    assert (2, 0.008) == (merged["totals"]["aborts"], merged["entries"][0]["lost_s"])
