"""``gilscope record``: traces one process for a while and prints what its threads waited for."""

import argparse
import contextlib
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator, Sequence

from gilscope.commands.colours import wants_colour
from gilscope.commands.numbers import pid_number, seconds_between
from gilscope.commands.options import (
    add_application_option,
    add_method_option,
    add_mode_option,
    add_stacks_option,
    chosen_application,
    chosen_method,
)
from gilscope.commands.outputs import (
    Output,
    UnfitForm,
    add_format_options,
    chosen_outputs,
    refuse_unfit,
    wants_snapshots,
    wants_timeline,
    write_reports,
)
from gilscope.commands.session import attach_named, checked, new_tracer, observe_until_end
from gilscope.doctor.explain import require_processes
from gilscope.errors import GilscopeError, NotPython, UnsupportedPython
from gilscope.gil.calibration.measure import measure_trap_costs
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import begin_loading
from gilscope.gil.target import inspect
from gilscope.gil.tracing.command import HeldCommand
from gilscope.gil.tracing.hold_windows import ObservationPlan
from gilscope.model.gil import Process, ProcessTotals, Recording
from gilscope.model.kinds import Mode
from gilscope.model.stack import Frame
from gilscope.model.transaction_words import LIBRARY_WORDS
from gilscope.model.transactions import StmProcess, StmRecording
from gilscope.process.files.source_files import SourceLines
from gilscope.process.view import view_of
from gilscope.runtimes.site_cache import SiteCache, default_folder
from gilscope.series.snapshots import SnapshotSeries
from gilscope.system import ending
from gilscope.system.rlimits import allow_many
from gilscope.text.printable import printable
from gilscope.tracing.tracer import Tracer
from gilscope.transactions.target import inspect_stm

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

SUMMARY = "trace one Python process for a while and report who waited for the GIL"

EXAMPLES = """\
examples:
  gilscope record -p 4711                    # until Ctrl-C or the end of the process
  gilscope record -p 4711 -d 10s             # for ten seconds
  gilscope record -- python3 app.py          # start a program and trace all of its life
  gilscope record -p 4711 -o waits.html      # the form by the name: .html, .json, .txt
  gilscope record -p 4711 --format text --format html=waits.html
"""

_TICK_S = 0.05
_SECONDS = seconds_between(0.001, 1e9)
_REPORT_S = 10.0
"""Timeout for the report that a signal has asked for."""
_COMMAND_S = 10.0
"""Timeout for the end of the command after a signal that may not have reached it."""
_UNEXPECTED = 1
_USAGE = 2
_COMMAND_NOT_EXECUTABLE = 126
_COMMAND_NOT_FOUND = 127


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-p", "--pid", type=pid_number, metavar="PID", help="trace the running process PID"
    )
    parser.add_argument(
        "-d", "--duration", type=_SECONDS, metavar="TIME", help="end after TIME: 10 or 10s, 2m, 1h"
    )
    add_mode_option(parser, Mode.CONTENTION, Mode.FULL)
    add_stacks_option(parser)
    add_method_option(parser)
    add_application_option(parser)
    add_format_options(parser)
    parser.add_argument(
        "command", nargs="*", metavar="-- COMMAND", help="a command to start and trace"
    )


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
    if arguments.command:
        return _record_command(arguments, outputs)
    try:
        return _record_running(arguments, outputs)
    except UnfitForm as error:
        print(f"error: {error}", file=sys.stderr)
        return _USAGE


def _tracer(arguments: argparse.Namespace, probe: GilProbe) -> Tracer:
    # What a trap costs is told in the report, and in full mode taken out of the holds.
    plan = ObservationPlan(
        Mode(arguments.mode), costs=measure_trap_costs(probe), reads_stacks=arguments.stacks
    )
    return new_tracer(arguments, probe, plan)


def _record_running(arguments: argparse.Namespace, outputs: Sequence[Output]) -> int:
    require_processes(named=True)
    loading = begin_loading(timeline=wants_timeline(outputs))
    try:
        # While the compiler works: what cannot be traced is refused at once.
        if not _is_python(arguments):
            refuse_unfit(outputs)
    except BaseException:
        loading.cancel()
        raise
    probe = GilProbe(loading)
    # Until its end the probes are taken out in order, whatever signal comes.
    with ending.told() as stopped:
        with probe:
            tracer = _tracer(arguments, probe)
            with contextlib.closing(tracer):
                process = attach_named(tracer, arguments.pid)
                if not stopped.is_set:
                    recording = _record(arguments, tracer, process, stopped)
                    # Taking the probes out takes a moment; nobody has to wait for it with the
                    # report.
                    succeeded = _write(arguments, outputs, recording)
                    return 0 if succeeded else _UNEXPECTED
        stopped.end()
    return _UNEXPECTED


def _write(
    arguments: argparse.Namespace, outputs: Sequence[Output], recording: Recording | StmRecording
) -> bool:
    return write_reports(outputs, recording, colour=wants_colour(arguments, sys.stdout))


def _is_python(arguments: argparse.Namespace) -> bool:
    """Return whether the process is a Python with a GIL, and not only one with transactions.

    Raises what says why it is neither.
    """
    view = view_of(arguments.pid)
    try:
        inspect(view, SiteCache(default_folder()), method=chosen_method(arguments)).close()
    except (NotPython, UnsupportedPython) as refusal:
        # PyPy-STM is a Python whose GIL is not known, for it has none.
        target = inspect_stm(view) if view.still_same() else None
        if target is None:
            raise checked(refusal, arguments.pid) from refusal
        target.close()
        return False
    return True


def _record_command(arguments: argparse.Namespace, outputs: Sequence[Output]) -> int:
    # Without working probes the command is not even started.
    probe = GilProbe(begin_loading(timeline=wants_timeline(outputs)))
    waits_for: list[HeldCommand] = []
    with ending.told(lambda number: _pass_on(number, waits_for)) as stopped:
        with probe:
            tracer = _tracer(arguments, probe)
            stopped.end()
            try:
                command = HeldCommand(arguments.command)
            except OSError as error:
                return _not_started(arguments.command[0], error)
            try:
                # It is not Python yet, and gilscope could wait for it without end.
                waits_for.append(command)
                arguments.duration = _run_to_interpreter(command, arguments.duration)
                process = attach_named(tracer, command.pid)
                waits_for.clear()
                recording = _record(arguments, tracer, process, stopped, command)
            except GilscopeError:
                # The user's program is not at fault: let it run on, then say what went wrong.
                command.release()
                if command.is_given_up:
                    _end_command(command, stopped, has_ended=command.has_ended)
                _wait_for(command, stopped)
                raise
            succeeded = _write(arguments, outputs, recording)
            tracer.close()
        _end_command(command, stopped, has_ended=recording.observation.ended)
        return _wait_for(command, stopped) or (0 if succeeded else _UNEXPECTED)


def _not_started(name: str, error: OSError) -> int:
    print(f"error: cannot start {printable(name)}: {error.strerror}", file=sys.stderr)
    is_there = not isinstance(error, FileNotFoundError)
    return _COMMAND_NOT_EXECUTABLE if is_there else _COMMAND_NOT_FOUND


def _run_to_interpreter(command: HeldCommand, duration_s: float | None) -> float | None:
    """Let *command* run until it is Python, and return what is left of *duration_s* then."""
    began_s = time.monotonic()
    command.run_to_interpreter(duration_s)
    return None if duration_s is None else max(0.0, duration_s - (time.monotonic() - began_s))


def _pass_on(number: int, waits_for: Sequence[HeldCommand]) -> None:
    for command in waits_for:
        if number == signal.SIGTERM:
            with contextlib.suppress(ProcessLookupError):
                os.kill(command.pid, number)
        else:
            # Ctrl-C has reached it by itself, and it may not care.
            command.give_up()


def _wait_for(command: HeldCommand, stopped: ending.Told) -> int:
    # It may take its time to clean up, and Ctrl-C has certainly reached it.
    stopped.allow(_COMMAND_S, from_terminal_s=None)
    return command.wait()


def _end_command(command: HeldCommand, stopped: ending.Told, *, has_ended: bool) -> None:
    # Ctrl-C has reached the command too, and it may take its time to clean up. Any other end is
    # gilscope's alone.
    if not has_ended and stopped.number != signal.SIGINT:
        with contextlib.suppress(ProcessLookupError):
            os.kill(command.pid, stopped.number or signal.SIGTERM)


def _record(
    arguments: argparse.Namespace,
    tracer: Tracer,
    process: Process | StmProcess,
    stopped: ending.Told,
    command: HeldCommand | None = None,
) -> Recording | StmRecording:
    with SourceLines(process.pid) as sources:
        began_ns = time.monotonic_ns()
        if command is not None:
            command.release()
        print(f"Tracing {_what_is_traced(process)}. Ctrl-C to end.", file=sys.stderr)
        snapshots = SnapshotSeries(began_ns) if wants_snapshots(arguments.outputs or ()) else None
        observation = observe_until_end(tracer, arguments.duration, stopped, snapshots)
        stopped.allow(_REPORT_S)
        live = observation.transactions
        if live is not None:
            return StmRecording(live, live.totals.at_ns - began_ns)
        seen = observation.gil
        assert seen is not None  # noqa: S101 - an observation has one of them
        at_ns = seen.totals.at_ns
        return Recording(
            seen,
            arguments.mode,
            # Held time is a part of this, waits are not older: all of it is seen from there on.
            at_ns - seen.since_ns,
            chosen_application(arguments),
            sources=sources.read(_frames(seen.totals)),
            timeline=tracer.gils.timeline(process.pid),
            ended_ns=time.time_ns() - (time.monotonic_ns() - at_ns),
            host=platform.node(),
            snapshots=() if snapshots is None else snapshots.kept,
        )


def _what_is_traced(process: Process | StmProcess) -> str:
    who = f"{printable(process.name)}, pid {process.pid}"
    if isinstance(process, StmProcess):
        return f"the transactions of {who} ({LIBRARY_WORDS[process.library]})"
    return f"the GIL of {who} (CPython {process.python})"


def _frames(totals: ProcessTotals) -> Iterator[Frame]:
    for edge in totals.edges:
        yield from edge.waiter.frames
        yield from edge.holder.frames
    for slow_drop in totals.slow_drops:
        yield from slow_drop.holder.frames
