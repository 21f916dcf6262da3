"""``gilscope record``: traces one process for a while and prints what its threads waited for."""

import argparse
import contextlib
import math
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from types import FrameType

from gilscope.commands.formats import (
    Output,
    add_format_options,
    chosen_outputs,
    wants_looks,
    wants_timeline,
    write_reports,
)
from gilscope.commands.options import (
    add_method_option,
    add_mode_option,
    add_stacks_option,
    chosen_method,
)
from gilscope.commands.record_stm import found_transactions, record_transactions
from gilscope.descriptors import allow_many
from gilscope.doctor.refusals import require_processes
from gilscope.errors import GilscopeError, NotPython, UnsupportedPython
from gilscope.gil.full_mode import ObservationPlan
from gilscope.gil.probe import GilProbe
from gilscope.gil.request import begin_loading
from gilscope.gil.site_cache import SiteCache, default_folder
from gilscope.gil.tracer import Tracer
from gilscope.gil.trap_costs import measure_trap_costs
from gilscope.launch import HeldCommand
from gilscope.looks import Looks
from gilscope.model import Frame, Mode, Observation, ProcessTotals, Recording
from gilscope.printable import printable
from gilscope.source_lines import SourceLines
from gilscope.target import inspect

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

SUMMARY = "trace one Python process for a while and report who waited for the GIL"

EXAMPLES = """\
examples:
  gilscope record -p 4711                    # until Ctrl-C or the end of the process
  gilscope record -p 4711 -d 10              # for ten seconds
  gilscope record -- python3 app.py          # start a program and trace all of its life
  gilscope record -p 4711 --format json -o waits.json
  gilscope record -p 4711 --format text --format html=waits.html
"""

_TICK_S = 0.05
_UNEXPECTED = 1
_USAGE = 2
_COMMAND_NOT_EXECUTABLE = 126
_COMMAND_NOT_FOUND = 127


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-p", "--pid", type=int, metavar="PID", help="trace the running process PID"
    )
    parser.add_argument(
        "-d", "--duration", type=_seconds, metavar="SECONDS", help="end after SECONDS"
    )
    add_mode_option(parser, Mode.CONTENTION, Mode.FULL)
    add_stacks_option(parser)
    add_method_option(parser)
    add_format_options(parser)
    parser.add_argument(
        "command", nargs="*", metavar="-- COMMAND", help="a command to start and trace"
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a time to wait for")
    return seconds


def run(arguments: argparse.Namespace) -> int:
    """Record as *arguments* say and return the exit code; raises GilscopeError."""
    if (arguments.pid is None) == (not arguments.command):
        print("error: give either -p PID or -- COMMAND", file=sys.stderr)
        return _USAGE
    try:
        outputs = chosen_outputs(arguments)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return _USAGE
    allow_many()
    with _stop_on_signals() as stopped:
        if arguments.command:
            return _record_command(arguments, outputs, stopped)
        return _record_running(arguments, outputs, stopped)


def _tracer(arguments: argparse.Namespace, probe: GilProbe, cache: SiteCache) -> Tracer:
    # What a trap costs is told in the report, and in full mode taken out of the holds.
    plan = ObservationPlan(
        Mode(arguments.mode), costs=measure_trap_costs(probe), reads_stacks=arguments.stacks
    )
    return Tracer(probe, cache, method=chosen_method(arguments), plan=plan)


class _Stop:
    """Set by Ctrl-C or SIGTERM: end the recording and report."""

    number: int | None = None
    waits_for: int | None = None
    """A command that is not Python yet, and that gilscope could wait for without end."""

    @property
    def is_set(self) -> bool:
        """Whether a signal has come."""
        return self.number is not None


@contextlib.contextmanager
def _stop_on_signals() -> Iterator[_Stop]:
    stop = _Stop()

    def handle(number: int, _frame: FrameType | None) -> None:
        stop.number = number
        if number == signal.SIGTERM and stop.waits_for is not None:
            os.kill(stop.waits_for, number)

    # A signal that was ignored when gilscope started stays ignored, as for any background job.
    wanted = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, handle) for number in wanted}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _record_running(
    arguments: argparse.Namespace, outputs: Sequence[Output], stopped: _Stop
) -> int:
    require_processes(named=True)
    loading = begin_loading(timeline=wants_timeline(outputs))
    cache = SiteCache(default_folder())
    try:
        # While the compiler works: what cannot be traced is refused at once.
        inspect(arguments.pid, cache, method=chosen_method(arguments))
    except (NotPython, UnsupportedPython) as error:
        # PyPy-STM is a Python whose GIL is not known, for it has none.
        try:
            found = found_transactions(arguments.pid, error)
        except BaseException:
            loading.cancel()
            raise
        with GilProbe(loading) as probe:
            costs = measure_trap_costs(probe)
        return record_transactions(arguments, outputs, found, costs, lambda: stopped.is_set)
    except BaseException:
        loading.cancel()
        raise
    with GilProbe(loading) as probe:
        tracer = _tracer(arguments, probe, cache)
        recording = _record(arguments, tracer, arguments.pid, stopped)
        # Taking the probes out takes a moment; nobody has to wait for it with the report.
        succeeded = write_reports(outputs, recording)
        tracer.close()
    return 0 if succeeded else _UNEXPECTED


def _record_command(
    arguments: argparse.Namespace, outputs: Sequence[Output], stopped: _Stop
) -> int:
    # Without working probes the command is not even started.
    with GilProbe(begin_loading(timeline=wants_timeline(outputs))) as probe:
        tracer = _tracer(arguments, probe, SiteCache(default_folder()))
        try:
            command = HeldCommand(arguments.command)
        except OSError as error:
            print(f"error: cannot start {arguments.command[0]}: {error.strerror}", file=sys.stderr)
            is_there = not isinstance(error, FileNotFoundError)
            return _COMMAND_NOT_EXECUTABLE if is_there else _COMMAND_NOT_FOUND
        try:
            stopped.waits_for = command.pid
            command.run_to_interpreter()
            stopped.waits_for = None
            recording = _record(arguments, tracer, command.pid, stopped, command)
        except GilscopeError:
            # The user's program is not at fault: let it run on, then say what went wrong.
            command.release()
            command.wait()
            raise
        succeeded = write_reports(outputs, recording)
        tracer.close()
    _end_command(command, stopped, has_ended=recording.observation.ended)
    return command.wait() or (0 if succeeded else _UNEXPECTED)


def _end_command(command: HeldCommand, stopped: _Stop, *, has_ended: bool) -> None:
    # Ctrl-C has reached the command too, and it may take its time to clean up. Any other end is
    # gilscope's alone.
    if not has_ended and stopped.number != signal.SIGINT:
        with contextlib.suppress(ProcessLookupError):
            os.kill(command.pid, stopped.number or signal.SIGTERM)


def _record(
    arguments: argparse.Namespace,
    tracer: Tracer,
    pid: int,
    stopped: _Stop,
    command: HeldCommand | None = None,
) -> Recording:
    process = tracer.attach(pid).process
    with SourceLines(pid) as sources:
        began_ns = time.monotonic_ns()
        if command is not None:
            command.release()
        print(
            f"Tracing the GIL of {printable(process.name)}, pid {pid} "
            f"(CPython {process.python}). Ctrl-C to end.",
            file=sys.stderr,
        )
        looks = Looks(began_ns) if wants_looks(arguments.outputs or ()) else None
        observation = _observe_until_end(tracer, began_ns, arguments.duration, stopped, looks)
        at_ns = observation.totals.at_ns
        return Recording(
            observation,
            arguments.mode,
            # Held time is a part of this, waits are not older: all of it is seen from there on.
            at_ns - observation.since_ns,
            sources=sources.read(_frames(observation.totals)),
            timeline=tracer.timeline(pid),
            ended_ns=time.time_ns() - (time.monotonic_ns() - at_ns),
            host=platform.node(),
            looks=() if looks is None else looks.kept,
        )


def _frames(totals: ProcessTotals) -> Iterator[Frame]:
    for edge in totals.edges:
        yield from edge.waiter.frames
        yield from edge.holder.frames
    for culprit in totals.culprits:
        yield from culprit.holder.frames


def _observe_until_end(
    tracer: Tracer,
    began_ns: int,
    duration_s: float | None,
    stopped: _Stop,
    looks: Looks | None,
) -> Observation:
    deadline_ns = None if duration_s is None else began_ns + int(duration_s * 1e9)
    while not stopped.is_set and tracer.pids:
        left_s = _TICK_S
        if deadline_ns is not None:
            left_s = min(left_s, (deadline_ns - time.monotonic_ns()) / 1e9)
            if left_s <= 0:
                break
        tracer.wait(left_s)
        tracer.tick()
        if looks is not None and looks.is_due(time.monotonic_ns()):
            for seen in tracer.observe():
                looks.add(seen)
    return tracer.observe(is_final=True)[-1]
