"""``python -m gilscope.pytest_plugin.child PID``: traces a process of tests, and says the sums.

A line comes when the probes are in place, and one for each line of standard input, a number, with
that number; at the end of standard input it ends. Each is an object of JSON; one with ``error`` is
the last.
"""

import contextlib
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from gilscope.commands.session import attach_named, observe_until_end
from gilscope.doctor.explain import explained, require_processes
from gilscope.errors import GilscopeError, NotPermitted
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import begin_loading
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.application import EVERYBODYS
from gilscope.model.gil import GilObservation
from gilscope.model.stack import Stack
from gilscope.naming.application import application_frame
from gilscope.naming.places import SiteNames
from gilscope.process.watch import ProcessWatch
from gilscope.pytest_plugin.own_tracer import ASKING
from gilscope.runtimes.site_cache import SiteCache, default_folder
from gilscope.system import ending
from gilscope.system.rlimits import allow_many
from gilscope.text.printable import printable
from gilscope.tracing.tracer import Tracer

__all__ = ["main", "sums"]

_FOR_TESTS = "Run pytest as root, or without --gilscope: markers are not applied then."


def main(pid: int) -> int:
    """Trace *pid* until standard input ends, and return the exit code."""
    with ending.watch():
        try:
            require_processes(named=True)
            allow_many()
            _trace(pid)
        except GilscopeError as refusal:
            error = explained(refusal, (pid,))
            remedy = f"{error.remedy}\n{_FOR_TESTS}" if _is_denied(error) else error.remedy
            _say({"error": str(error), "remedy": remedy})
            return error.exit_code
    return 0


def _is_denied(error: GilscopeError) -> bool:
    return isinstance(error, NotPermitted) or os.geteuid() != 0


def _trace(pid: int) -> None:
    probe = GilProbe(begin_loading())
    with ending.told() as stopped, probe:
        watch = ProcessWatch()
        tracer = Tracer(GilAccount(probe, SiteCache(default_folder()), watch=watch), watch=watch)
        with contextlib.closing(tracer):
            attach_named(tracer, pid)
            names, is_over = SiteNames(), threading.Event()

            def answer() -> None:
                try:
                    for number in sys.stdin.buffer:
                        _say({**_sums(tracer, names), "number": int(number)})
                except BrokenPipeError:
                    pass  # the tests have ended without a word
                finally:
                    is_over.set()

            _say({**_sums(tracer, names), "number": 0})
            threading.Thread(target=answer, name="answer", daemon=True).start()
            observe_until_end(
                tracer,
                None,
                stopped,
                is_over=lambda: is_over.is_set() or not tracer.traces(pid),
                ticked=lambda _: None,
            )


def _sums(tracer: Tracer, names: SiteNames) -> Mapping[str, Any]:
    for seen in tracer.observe():
        if seen.gil is not None:
            return sums(seen.gil, names)
    return {"error": "the process of the tests is not traced any more", "remedy": ""}


def sums(seen: GilObservation, names: SiteNames) -> Mapping[str, Any]:
    """Return what has been counted of the process, but for waits that asking for it has caused."""
    if seen.invalid:
        return {"error": f"its figures cannot be trusted: {seen.invalid}", "remedy": ""}
    totals = seen.totals
    asking = [edge.lost for edge in totals.edges if _is_asking(edge.waiter)]
    places: Counter[str] = Counter()
    for edge in totals.edges:
        if not _is_asking(edge.waiter):
            frame = application_frame(edge.holder, EVERYBODYS)
            places[printable(names.owner(frame, edge.holder))] += edge.lost.ns
    return {
        "at_ns": totals.at_ns,
        "wait_ns": totals.wait_ns - sum(lost.ns for lost in asking),
        "waits": sum(thread.waits for thread in totals.threads)
        - sum(lost.count for lost in asking),
        "places": places,
    }


def _is_asking(stack: Stack) -> bool:
    return any(frame.file.endswith(f"gilscope/pytest_plugin/{ASKING}") for frame in stack.frames)


def _say(answer: Mapping[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
