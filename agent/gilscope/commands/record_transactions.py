"""What ``gilscope record -p PID`` does with a process that is no Python but runs transactions."""

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence

from gilscope.budget.trap_costs import TrapCosts
from gilscope.commands.outputs import Output, write_rendered
from gilscope.errors import GilscopeError
from gilscope.model.transaction_words import LIBRARY_WORDS
from gilscope.model.transactions import StmRecording
from gilscope.process import procfs
from gilscope.reports.transactions import json as transactions_json
from gilscope.reports.transactions import text as transactions_text
from gilscope.system import ending
from gilscope.text.printable import printable
from gilscope.transactions.plan import StmPlan
from gilscope.transactions.target import CHECKED, StmTarget, inspect_stm
from gilscope.transactions.tracer import StmTracer

__all__ = ["found_transactions", "record_transactions"]

_TICK_S = 0.05
_REPORT_S = 10.0
"""So long the report may take that a signal has asked for."""
_FORMS = ("text", "json")
_UNEXPECTED, _USAGE = 1, 2


def found_transactions(pid: int, refusal: GilscopeError) -> StmTarget:
    """Return how to trace the transactions of *pid*, whose GIL cannot be for *refusal*.

    Raises *refusal* where there are none either, with what was checked, and what `inspect_stm`
    raises.
    """
    target = inspect_stm(pid) if procfs.is_alive(pid) else None
    if target is not None:
        return target
    if not procfs.is_alive(pid):
        raise refusal
    raise type(refusal)(f"{refusal}, {CHECKED}", remedy=refusal.remedy) from refusal


def record_transactions(
    arguments: argparse.Namespace,
    outputs: Sequence[Output],
    target: StmTarget,
    costs: TrapCosts,
) -> int:
    """Record *target* as *arguments* say and return the exit code; raises GilscopeError.

    All the time, as was asked for; the report tells what that has cost, by *costs*.
    """
    unfit = sorted({output.form for output in outputs} - set(_FORMS))
    if unfit:
        print(
            f"error: transactions are reported as {' or '.join(_FORMS)}, not as {unfit[0]}",
            file=sys.stderr,
        )
        return _USAGE
    tracer = StmTracer(plan=StmPlan(costs))
    with contextlib.closing(tracer):
        tracer.attach(target)
        with ending.told() as stopped:
            recording = _record(arguments, tracer, target, stopped)
            stopped.allow(_REPORT_S)
            succeeded = write_rendered(outputs, lambda output: _rendered(output, recording))
            tracer.close()
    return 0 if succeeded else _UNEXPECTED


def _record(
    arguments: argparse.Namespace,
    tracer: StmTracer,
    target: StmTarget,
    stopped: ending.Told,
) -> StmRecording:
    began_ns = time.monotonic_ns()
    process = target.process
    print(
        f"Tracing the transactions of {printable(process.name)}, pid {process.pid} "
        f"({LIBRARY_WORDS[process.library]}). Ctrl-C to end.",
        file=sys.stderr,
    )
    duration_s = arguments.duration
    deadline_ns = None if duration_s is None else began_ns + int(duration_s * 1e9)
    while not stopped.is_set and tracer.pids:
        left_s = _TICK_S
        if deadline_ns is not None:
            left_s = min(left_s, (deadline_ns - time.monotonic_ns()) / 1e9)
            if left_s <= 0:
                break
        time.sleep(left_s)
        tracer.tick()
    (observation,) = tracer.observe()
    return StmRecording(observation, observation.totals.at_ns - began_ns)


def _rendered(output: Output, recording: StmRecording) -> str:
    if output.form == "json":
        return transactions_json.render(recording)
    return transactions_text.render(recording, colour=output.file is None and sys.stdout.isatty())
