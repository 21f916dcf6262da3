"""A dump for programs, version 1; see ``dump.schema.json``."""

import json
from typing import Any

from gilscope.model.gil import Edge
from gilscope.model.moment.dump import Dump, DumpedGil, DumpedThread, Step
from gilscope.model.moment.seen import NativeLock, ThreadStack
from gilscope.reports.dump.words import verdict
from gilscope.reports.gil.stack_table import StackTable
from gilscope.reports.json_lines import rendered
from gilscope.text.units import NS_PER_S

__all__ = ["render", "render_line", "report"]

_VERSION = 1


def render(dump: Dump) -> str:
    """Return the report as JSON: a line for each key, and one for each item of its lists."""
    return rendered(report(dump))


def render_line(dump: Dump) -> str:
    """Return the same on one line, without its end."""
    return json.dumps(report(dump))


def report(dump: Dump) -> dict[str, Any]:
    """Return the report as plain values: seconds as floats, null for what is not known."""
    stacks = StackTable()
    threads = [_thread(each, stacks) for each in dump.threads]
    pairs = None if dump.pairs is None else [_pair(each, stacks) for each in dump.pairs]
    trigger = dump.trigger
    return {
        "version": _VERSION,
        "at_s": dump.at_ns / NS_PER_S,
        "process": {"pid": dump.pid, "name": dump.process, "python": dump.python},
        "trigger": None
        if trigger is None
        else {
            "tid": trigger.tid,
            "waited_s": trigger.waited_ns / NS_PER_S,
            "limit_s": trigger.limit_ns / NS_PER_S,
        },
        "verdict": list(verdict(dump)),
        "deadlocks": [[_step(step) for step in circle] for circle in dump.deadlocks],
        "gils": [_gil(each) for each in dump.gils],
        "threads": threads,
        "left_out": dump.left_out,
        "pairs_s": None if dump.pairs is None else dump.pairs_ns / NS_PER_S,
        "pairs": pairs,
        "stacks": stacks.stacks(),
        "frames": stacks.frames(),
    }


def _gil(gil: DumpedGil) -> dict[str, Any]:
    return {
        "interpreter": gil.gil.interpreter_id,
        "held": gil.is_held,
        "holder": gil.holder_tid,
        "held_s": _seconds(gil.held_ns),
        "waiting": list(gil.waiting_tids),
    }


def _thread(thread: DumpedThread, stacks: StackTable) -> dict[str, Any]:
    return {
        "tid": thread.tid,
        "name": thread.name,
        "role": thread.role,
        "state": thread.state,
        "call": None if thread.call is None else thread.call.name,
        "does": thread.call_words or None,
        "waits_for": None if thread.awaited is None else thread.awaited.value,
        "waiting_s": _seconds(thread.waiting_ns),
        "lock": None if thread.lock is None else _lock(thread.lock),
        "cpu_s": _seconds(thread.cpu_ns),
        "run_delay_s": _seconds(thread.run_delay_ns),
        "trace_id": None if thread.request is None else thread.request.trace_id,
        "span_id": None if thread.request is None else thread.request.span_id,
        "stacks": [_stack(each, stacks) for each in thread.stacks],
    }


def _lock(lock: NativeLock) -> dict[str, Any]:
    # An address has more digits than a number of JSON may have.
    return {"address": f"{lock.address:#x}", "owner": lock.owner_tid}


def _stack(each: ThreadStack, stacks: StackTable) -> dict[str, Any]:
    return {"interpreter": each.interpreter_id, "stack": stacks.number(each.stack)}


def _step(step: Step) -> dict[str, Any]:
    return {"tid": step.tid, "waits_for": step.awaited.value, "address": f"{step.address:#x}"}


def _pair(edge: Edge, stacks: StackTable) -> dict[str, Any]:
    return {
        "kind": edge.kind.value,
        "wait_s": edge.lost.ns / NS_PER_S,
        "waits": edge.lost.count,
        "waiter": stacks.number(edge.waiter),
        "holder": stacks.number(edge.holder),
    }


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / NS_PER_S
