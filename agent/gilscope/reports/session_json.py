"""The machine-readable report of a session, version 2; see ``record.schema.json``."""

from typing import Any

from gilscope.model.gil import Refusal
from gilscope.model.session import Session
from gilscope.reports.gil import json as of_gil
from gilscope.reports.json_lines import rendered
from gilscope.reports.locks import json as of_locks
from gilscope.reports.transactions import json as of_transactions
from gilscope.text.units import NS_PER_S

__all__ = ["render", "report"]


def render(session: Session) -> str:
    """Return the report as JSON: a line for each key, and one for each item of its lists."""
    return rendered(report(session), _PARTS)


def report(session: Session) -> dict[str, Any]:
    """Return the report as plain values: seconds as floats, null for what cannot be measured."""
    totals = [recording.observation.totals for recording in session.recordings]
    return {
        "version": 2,
        "mode": session.mode,
        "duration_s": session.duration_ns / NS_PER_S,
        "wait_s": sum(each.wait_ns for each in totals) / NS_PER_S,
        "waits": sum(thread.waits for each in totals for thread in each.threads),
        "processes": [of_gil.report(recording) for recording in session.recordings],
        "transactions": [of_transactions.report(each) for each in session.transactions],
        "locks": [of_locks.report(each) for each in session.locks],
        "refused": [_refusal(refusal) for refusal in session.refusals],
        "left_out": session.left_out,
    }


def _refusal(refusal: Refusal) -> dict[str, Any]:
    return {
        "pid": refusal.pid,
        "name": refusal.name,
        "reason": refusal.reason,
        "remedy": refusal.remedy,
    }


_PARTS = {"processes", "transactions", "locks"}
"""Lists of what has keys and lists of its own."""
