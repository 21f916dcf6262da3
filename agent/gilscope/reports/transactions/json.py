"""The machine-readable report on the transactions of a live process, version 1."""

import json
from typing import Any

from gilscope.model.histogram import Histogram
from gilscope.model.transactions import Method, StmObservation, StmRecording, StmThread
from gilscope.reports.gil.json import buckets
from gilscope.text.units import NS_PER_S

__all__ = ["render", "report"]


def render(recording: StmRecording) -> str:
    """Return the report as indented JSON with a newline at its end."""
    return json.dumps(report(recording), indent=2) + "\n"


def report(recording: StmRecording) -> dict[str, Any]:
    """Return the report as plain values: seconds as floats, null for what cannot be measured."""
    observation = recording.observation
    process, totals = observation.process, observation.totals
    waits = totals.waits
    return {
        "version": 1,
        "duration_s": recording.duration_ns / NS_PER_S,
        "observed_s": observation.observed_ns / NS_PER_S,
        "process": {
            "pid": process.pid,
            "name": process.name,
            "library": process.library.value,
            "method": process.method.value,
            "numbering": process.numbering,
            "path": process.path,
            "build_id": process.build_id,
            "checks": list(process.checks),
            "valid": not observation.invalid,
            "invalid_reason": observation.invalid or None,
        },
        "totals": _totals(observation),
        "histograms": {
            "transaction": _buckets(totals.committed),
            "abort_cost": _buckets(totals.aborted),
        },
        "waits": None
        if waits is None
        else {
            kind: {"wait_s": tally.ns / NS_PER_S, "waits": tally.count}
            for kind, tally in waits.items()
        },
        "collections": None
        if totals.collections is None
        else {
            generation: {"gc_s": tally.ns / NS_PER_S, "gcs": tally.count}
            for generation, tally in totals.collections.items()
        },
        "inevitable": dict(totals.inevitable),
        "restarts": None if totals.restarts is None else dict(totals.restarts),
        "threads": [_thread(thread, process.method) for thread in totals.threads],
    }


def _totals(observation: StmObservation) -> dict[str, Any]:
    totals, method = observation.totals, observation.process.method
    cost = observation.cost
    return {
        "commits": totals.commits,
        "committed_s": _sum_s(totals.committed),
        "aborts": totals.aborts,
        "abort_cost_s": _sum_s(totals.aborted),
        "abort_cost_includes_waits": not method.has_waits if method.has_abort_costs else None,
        "cancels": totals.cancels,
        "conflicts": totals.conflicts,
        "traps": totals.traps,
        "overhead_s": None if cost is None else cost.overhead_ns / NS_PER_S,
        "overhead_ratio": None if cost is None else cost.recent_ratio,
        "lost_events": dict(totals.lost_events),
    }


def _thread(thread: StmThread, method: Method) -> dict[str, Any]:
    return {
        "tid": thread.tid,
        "name": thread.name,
        "commits": thread.committed.count,
        "committed_s": thread.committed.ns / NS_PER_S if method.has_commit_times else None,
        "aborts": thread.aborted.count if method.has_aborts else None,
        "abort_cost_s": thread.aborted.ns / NS_PER_S if method.has_abort_costs else None,
    }


def _buckets(histogram: Histogram | None) -> list[list[float | int | None]] | None:
    return None if histogram is None else buckets(histogram)


def _sum_s(histogram: Histogram | None) -> float | None:
    return None if histogram is None else histogram.sum_ns / NS_PER_S
