"""The machine-readable report on STM logs, version 1."""

import json
from collections.abc import Sequence
from io import StringIO
from typing import Any

from gilscope.model.stm_log import Conflict, Gap, LogFile, LogGroup, OverTime, StmLog, StmReport
from gilscope.text.units import NS_PER_S

__all__ = ["render", "report"]


def render(stm: StmReport) -> str:
    """Return the report as indented JSON with a newline at its end."""
    text = StringIO()
    # Not `dumps`, which keeps each number of thousands of time lines as a text of its own.
    json.dump(report(stm), text, indent=2)
    text.write("\n")
    return text.getvalue()


def report(stm: StmReport) -> dict[str, Any]:
    """Return the report as plain values: seconds as floats, null for what is not measured."""
    return {
        "version": 1,
        "files": {file.name: _file(file) for file in stm.files},
        "merged": [_merged(group) for group in stm.groups if len(group.logs) > 1],
    }


def _file(file: LogFile) -> dict[str, Any] | None:
    return {"bytes": file.size, **_logs(file, file.logs)} if file.logs else None


def _logs(file: LogFile, logs: Sequence[StmLog]) -> dict[str, Any]:
    first, *others = logs
    if not others:
        gap = file.trailing_gap
        ending = {"gap": None if gap is None else _gap(gap, None), "after_gap": None}
        return {**_log(first, file.cut_tail_bytes), **ending}
    following = others[0]
    between = None if following.gap is None else _gap(following.gap, following.offset)
    return {**_log(first, 0), "gap": between, "after_gap": _logs(file, others)}


def _gap(gap: Gap, resync_offset: int | None) -> dict[str, Any]:
    return {
        "offset": gap.offset,
        "nul_bytes": gap.nul_bytes,
        "partial_record_bytes": gap.size - gap.nul_bytes,
        "resync_offset": resync_offset,
    }


def _merged(group: LogGroup) -> dict[str, Any]:
    names = [log.name for log in group.logs]
    return {"name": group.summary.name, "names": names, **_log(group.summary, None)}


def _log(log: StmLog, cut_tail_bytes: int | None) -> dict[str, Any]:
    return {
        "layout": log.layout,
        "events_table": log.events_table,
        "records": log.records,
        "counts": dict(log.counts),
        "with_marker": dict(log.with_marker),
        "threads": log.threads,
        "begin_s": log.first_ns / NS_PER_S,
        "span_s": log.span_ns / NS_PER_S,
        "cut_tail_bytes": cut_tail_bytes,
        "backward_timestamps": log.backward_timestamps,
        "semantics": log.semantics,
        "corrected": not log.is_original and log.semantics != "S0",
        "totals": _totals(log),
        "commits_over_time": _over_time(log.commits_over_time),
        "aborts_over_time": _over_time(log.aborts_over_time),
        "entries": [_entry(conflict) for conflict in log.conflicts],
    }


def _totals(log: StmLog) -> dict[str, Any]:
    totals = log.totals
    is_corrected = not log.is_original and log.semantics != "S0"
    late = is_corrected or log.semantics == "S2"
    sums: dict[str, Any] = {
        "total_time_s": totals.total_ns / NS_PER_S,
        "contentions": sum(conflict.count for conflict in log.conflicts),
        "cpu_time_s": _seconds(totals.cpu_ns, is_corrected or log.semantics != "S2"),
        "committed_s": _seconds(totals.committed_ns, late),
        "aborted_s": _seconds(totals.aborted_ns, late),
        "paused_s": _seconds(totals.paused_ns, late),
        "gc_minor_s": _seconds(totals.minor_gc_ns, late),
        "gc_major_s": _seconds(totals.major_gc_ns, late),
        "commits": totals.commits if late else None,
        "aborts": totals.aborts if late else None,
        "detached_s": _seconds(totals.detached_ns, is_corrected),
        "paused_outside_s": _seconds(totals.paused_outside_ns, is_corrected),
        "unfinished_s": _seconds(totals.unfinished_ns, is_corrected),
        "unexplained_s": _seconds(totals.unexplained_ns, is_corrected),
        "unexplained_aborts": totals.unexplained if is_corrected else None,
        "unlogged_commits_s": _seconds(totals.unlogged_commit_ns, is_corrected),
        "unlogged_commits": totals.unlogged_commits if is_corrected else None,
    }
    waits = {
        kind: {"wait_s": ns / NS_PER_S, "waits": number}
        for kind, (ns, number) in totals.waits.items()
    }
    return {**sums, "waits": waits if is_corrected else None}


def _seconds(ns: int, is_measured: bool) -> float | None:  # noqa: FBT001 - said where it is called
    return ns / NS_PER_S if is_measured else None


def _entry(conflict: Conflict) -> dict[str, Any]:
    return {
        "lost_s": conflict.lost_ns / NS_PER_S,
        "paused_s": conflict.paused_ns / NS_PER_S,
        "count": conflict.count,
        "kind": conflict.kind,
        "markers": list(conflict.markers),
        "rest": conflict.is_rest,
        "over_time": _over_time(conflict.over_time),
    }


def _over_time(line: OverTime) -> dict[str, Any]:
    used = len(line.counts)
    while used and not line.counts[used - 1]:
        used -= 1
    return {
        "begin_s": line.begin_ns / NS_PER_S,
        "step_s": line.step_ns / NS_PER_S,
        "counts": list(line.counts[:used]),
    }
