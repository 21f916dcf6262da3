"""What the machine-readable report says of the requests that waited or kept the GIL, by trace."""

from typing import Any

from gilscope.model.traces import RouteWait, TraceHolds, Traces, TraceWait
from gilscope.reports.gil.stack_table import StackTable
from gilscope.text.units import NS_PER_S

__all__ = ["traces_value"]


def traces_value(
    traces: Traces | None, stacks: StackTable, *, sees_holds: bool
) -> dict[str, Any] | None:
    """Return it as plain values, with the stacks by their numbers in *stacks*.

    *sees_holds*: the probes see all holds, or those in windows.
    """
    if traces is None:
        return None
    return {
        "number": traces.number,
        "wait_s": traces.wait_ns / NS_PER_S,
        "waits": traces.waits,
        "worst": [_trace(each, stacks) for each in traces.worst],
        "routes": [_route(each, stacks) for each in traces.routes],
        "slow_drops": _holds(traces.slow_drops),
        "long_holds": _holds(traces.long_holds) if sees_holds else None,
    }


def _holds(holds: TraceHolds) -> dict[str, Any]:
    return {
        "sum_s": holds.ns / NS_PER_S,
        "times": holds.times,
        "worst": [
            {
                "trace_id": each.trace_id,
                "route": each.route,
                "sum_s": each.ns / NS_PER_S,
                "times": each.times,
                "longest_s": each.longest_ns / NS_PER_S,
                "ended_unix_s": each.ended_unix_ns / NS_PER_S,
                "span_id": each.span_id,
            }
            for each in holds.worst
        ],
    }


def _route(each: RouteWait, stacks: StackTable) -> dict[str, Any]:
    return {
        "route": each.route,
        "requests": each.requests,
        "wait_s": each.wait_ns / NS_PER_S,
        "waits": each.waits,
        "longest_s": each.longest_ns / NS_PER_S,
        "holder": stacks.number(each.holder),
    }


def _trace(each: TraceWait, stacks: StackTable) -> dict[str, Any]:
    return {
        "trace_id": each.trace_id,
        "wait_s": each.wait_ns / NS_PER_S,
        "waits": each.waits,
        "longest_s": each.longest_ns / NS_PER_S,
        "ended_unix_s": each.ended_unix_ns / NS_PER_S,
        "span_id": each.span_id,
        "holder": stacks.number(each.holder),
    }
