"""What ``stm follow`` tells programs: an object a line, version 1."""

import json
from typing import Any

from gilscope.model.stm_log import StmReport
from gilscope.reports.stm_log import json as stm_log_json
from gilscope.stm_log.interval import Interval, LogChange, costliest
from gilscope.stm_log.sums import LogSums
from gilscope.text.units import NS_PER_S

__all__ = ["render", "render_report"]


def render(seen: Interval, at_s: float, most: int) -> str:
    """Return the line for *seen*, which ended at *at_s* of the wall clock."""
    line = {
        "version": 1,
        "at_s": at_s,
        "interval_s": seen.length_ns / NS_PER_S,
        "logs": {change.log.name: _change(change, most) for change in seen.changes},
    }
    return json.dumps(line) + "\n"


def render_report(stm: StmReport) -> str:
    """Return the last line, which has the whole report."""
    return json.dumps({"version": 1, "report": stm_log_json.report(stm)}) + "\n"


def _change(change: LogChange, most: int) -> dict[str, Any]:
    log = change.log
    return {
        "files": log.files,
        "bytes": log.size,
        "lag_bytes": log.lag_bytes,
        "problem": log.problem or None,
        "interval": {"read_bytes": change.read_bytes, **_sums(change.since, most)},
        "total": {"read_bytes": log.read_bytes, **_sums(log.sums, most)},
    }


def _sums(sums: LogSums, most: int) -> dict[str, Any]:
    return {
        "records": sums.records,
        "commits": sums.commits,
        "aborts": sums.aborts,
        "committed_s": sums.committed_runs.sum_ns / NS_PER_S,
        "aborted_s": sums.aborted_runs.sum_ns / NS_PER_S,
        "gc_minor_s": sums.minor_gc_ns / NS_PER_S,
        "gc_major_s": sums.major_gc_ns / NS_PER_S,
        "waits": {kind: ns / NS_PER_S for kind, ns in sums.waits_ns.items()},
        "errors": dict(sums.errors),
        "entries": [
            {
                "lost_s": loss.lost_ns / NS_PER_S,
                "paused_s": loss.paused_ns / NS_PER_S,
                "count": loss.count,
                "kind": kind,
                "markers": list(markers),
                "rest": is_rest,
            }
            for (kind, markers, is_rest), loss in costliest(sums, most)
        ],
    }
