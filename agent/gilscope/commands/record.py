"""``gilscope record``: traces processes for a while and prints what their threads waited for."""

import argparse
import contextlib
import sys
from collections.abc import Sequence

from gilscope.bpf.loader import Loading
from gilscope.commands.colours import wants_colour
from gilscope.commands.diff import add_limit_option, check_limits
from gilscope.commands.numbers import seconds_between, share
from gilscope.commands.options import (
    add_application_option,
    add_locks_option,
    add_method_option,
    add_mode_option,
    add_native_stacks_option,
    add_stacks_option,
    add_target_options,
    chosen_application,
    chosen_method,
    has_targets,
    shares_probes,
)
from gilscope.commands.outputs import (
    Output,
    UnfitForm,
    add_format_options,
    chosen_outputs,
    refuse_unfit,
    wants_moment,
    wants_timeline,
    write_reports,
)
from gilscope.commands.recording.recorder import Recorder
from gilscope.commands.recording.started import (
    end_command,
    not_started,
    pass_on,
    record_started,
    wait_for,
)
from gilscope.commands.recording.watching import Watching
from gilscope.commands.session import attach_tree, checked, new_tracer
from gilscope.discovery.selection import descendants_of
from gilscope.doctor.explain import require_processes
from gilscope.errors import GilscopeError, NoGil, NotPython, UnsupportedPython
from gilscope.gil.calibration.measure import measure_trap_costs
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import begin_loading
from gilscope.gil.target import inspect
from gilscope.gil.tracing.command import HeldCommand
from gilscope.locks.target import inspect_locks
from gilscope.model.kinds import Mode
from gilscope.model.session import Session
from gilscope.model.transactions import Library
from gilscope.process.view import ProcessView, view_of
from gilscope.runtimes.site_cache import SiteCache, default_folder
from gilscope.system import ending
from gilscope.system.rlimits import allow_many
from gilscope.tracing.tracer import Tracer
from gilscope.transactions.target import inspect_stm

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

SUMMARY = "trace Python processes for a while and report who waited for the GIL"

EXAMPLES = """\
examples:
  gilscope record -p 4711                    # it and its children, until it ends or Ctrl-C
  gilscope record -p 4711 -d 10s             # for ten seconds
  gilscope record -- python3 app.py          # start a program and trace all of its life
  gilscope record --match gunicorn -d 30s    # all whose command line matches
  gilscope record -p 4711 -o waits.html      # the form by the name: .html, .json, .txt
  gilscope record -p 4711 --format text --format html=waits.html
"""

_SECONDS = seconds_between(0.001, 1e9)
_REPORT_S = 10.0
"""Timeout for the report that a signal has asked for."""
_UNEXPECTED = 1
_USAGE = 2


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_target_options(parser, has_default=False)
    parser.add_argument(
        "--no-children",
        dest="children",
        action="store_false",
        help="trace no children of PID or COMMAND",
    )
    parser.add_argument(
        "-d", "--duration", type=_SECONDS, metavar="TIME", help="end after TIME: 10 or 10s, 2m, 1h"
    )
    add_mode_option(parser, Mode.CONTENTION, Mode.FULL)
    parser.add_argument(
        "--overhead-budget",
        type=share,
        default="1%",
        metavar="PERCENT",
        help="what tracing transactions, or locks, may cost a process, of its own CPU time, unless "
        "in full mode (default: 1%%)",
    )
    add_stacks_option(parser)
    add_native_stacks_option(parser)
    add_method_option(parser)
    add_locks_option(parser)
    add_application_option(parser)
    add_format_options(parser)
    parser.add_argument(
        "--full",
        action="store_true",
        help="print the whole report and not one screen of it; in a file it is whole anyway",
    )
    add_limit_option(parser, has_before=False)
    parser.add_argument(
        "command", nargs="*", metavar="-- COMMAND", help="a command to start and trace"
    )


def run(arguments: argparse.Namespace) -> int:
    """Record as *arguments* say and return the exit code; raises GilscopeError."""
    if has_targets(arguments) == bool(arguments.command):
        print("error: give either -p PID, --match, --all or -- COMMAND", file=sys.stderr)
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


def _tracer(arguments: argparse.Namespace, outputs: Sequence[Output], probe: GilProbe) -> Tracer:
    # What a trap costs is told in the report, and in full mode taken out of the holds.
    plan = ObservationPlan(
        Mode(arguments.mode),
        arguments.overhead_budget,
        measure_trap_costs(probe),
        reads_stacks=arguments.stacks,
        native_stacks=arguments.native_stacks,
        shares_probes=shares_probes(arguments),
    )
    return new_tracer(
        arguments,
        probe,
        plan,
        has_locks=arguments.locks,
        has_timeline=wants_timeline(outputs),
        has_moments=wants_moment(outputs),
    )


def _begin_loading(
    arguments: argparse.Namespace, outputs: Sequence[Output], *, discover: bool
) -> Loading:
    # Full mode tells what was released for too short a time out of the waits one by one.
    moments = wants_moment(outputs) or arguments.mode == Mode.FULL.value
    timeline = wants_timeline(outputs)
    return begin_loading(timeline=timeline, moments=moments, discover=discover)


def _record_running(arguments: argparse.Namespace, outputs: Sequence[Output]) -> int:
    pids: Sequence[int] = arguments.pid or ()
    require_processes(named=bool(pids))
    loading = _begin_loading(arguments, outputs, discover=not pids)
    try:
        # While the compiler works: what cannot be traced is refused at once.
        are_pythons = [_has_python(arguments, pid) for pid in pids]
        if pids and not any(are_pythons):
            refuse_unfit(outputs, has_locks=arguments.locks and any(map(_has_locks, pids)))
    except BaseException:
        loading.cancel()
        raise
    probe = GilProbe(loading)
    # Until its end the probes are taken out in order, whatever signal comes.
    with ending.told() as stopped:
        with probe:
            tracer = _tracer(arguments, outputs, probe)
            with contextlib.closing(tracer), Recorder(arguments, tracer) as recorder:
                named = list(pids)
                for pid in pids:
                    for process in attach_tree(tracer, pid, children=arguments.children):
                        recorder.add(process)
                        named.append(process.pid)
                    if stopped.is_set:
                        break
                # What was said to be traced is reported, however soon the signal has come.
                if recorder.has_any or not stopped.is_set:
                    session = _record(arguments, tracer, recorder, named, stopped)
                    # Taking the probes out takes a moment; nobody has to wait for it with the
                    # report.
                    succeeded = _write(arguments, outputs, session)
                    _check(arguments, session)
                    return 0 if succeeded else _UNEXPECTED
        stopped.end()
    return _UNEXPECTED


def _record(
    arguments: argparse.Namespace,
    tracer: Tracer,
    recorder: Recorder,
    named: Sequence[int],
    stopped: ending.Told,
) -> Session:
    watching = Watching(arguments, tracer, recorder, named)
    with watching.searching():
        watching.until_end(stopped)
    stopped.allow(_REPORT_S)
    session = watching.session()
    if not (session.recordings or session.transactions or session.refusals or session.locks):
        raise tracer.gils.without_gil or NotPython(
            "no Python process that was chosen has been running"
        )
    return session


def _write(arguments: argparse.Namespace, outputs: Sequence[Output], session: Session) -> bool:
    colour = wants_colour(arguments, sys.stdout)
    return write_reports(outputs, session, colour=colour, whole=arguments.full)


def _check(arguments: argparse.Namespace, session: Session) -> None:
    if arguments.limits:
        # Not at every start: most recordings have no limits.
        from gilscope.reports import session_json  # noqa: PLC0415 - see above
        from gilscope.verdict.figures import figures_of  # noqa: PLC0415 - likewise

        report = session_json.report(session)
        check_limits(arguments.limits, figures_of(report, chosen_application(arguments)))


def _has_python(arguments: argparse.Namespace, pid: int) -> bool:
    """Return whether *pid*, or else a process below it that is wanted, is a Python with a GIL.

    Raises what says why *pid* is none, where no other is traced in its place.
    """
    try:
        return _is_python(arguments, pid)
    except NotPython:
        found = []
        for child in descendants_of(pid) if arguments.children else ():
            with contextlib.suppress(GilscopeError, OSError):
                found.append(_is_python(arguments, child))
        if not found:
            raise
        return any(found)


def _is_python(arguments: argparse.Namespace, pid: int) -> bool:
    """Return whether *pid* is a Python with a GIL, and not only one with transactions or locks.

    Raises what says why it is none of them.
    """
    view = view_of(pid)
    try:
        inspect(view, SiteCache(default_folder()), method=chosen_method(arguments)).close()
    except NoGil:
        if not arguments.locks:
            raise
        inspect_locks(view).close()
        return False
    except (NotPython, UnsupportedPython) as refusal:
        # PyPy-STM is a Python whose GIL is not known, for it has none.
        target = inspect_stm(view) if view.still_same() else None
        if target is None:
            raise checked(refusal, pid) from refusal
        target.close()
        return False
    return True


def _has_locks(pid: int) -> bool:
    """Return whether *pid* is a Python whose locks can be traced."""
    with contextlib.suppress(GilscopeError, OSError):
        inspect_locks(view_of(pid)).close()
        return True
    return False


def _is_rpython(view: ProcessView) -> bool:
    """Return whether the program of *view* is one of RPython with transactions."""
    target = inspect_stm(view, (Library.RPYTHON,))
    if target is not None:
        target.close()
    return target is not None


def _record_command(arguments: argparse.Namespace, outputs: Sequence[Output]) -> int:
    # Without working probes the command is not even started.
    probe = GilProbe(_begin_loading(arguments, outputs, discover=False))
    waits_for: list[HeldCommand] = []
    with ending.told(lambda number: pass_on(number, waits_for)) as stopped:
        with probe:
            tracer = _tracer(arguments, outputs, probe)
            stopped.end()
            try:
                command = HeldCommand(arguments.command, _is_rpython)
            except OSError as error:
                return not_started(arguments.command[0], error)
            try:
                session = record_started(arguments, tracer, command, waits_for, stopped)
            except GilscopeError:
                # The user's program is not at fault: let it run on, then say what went wrong.
                command.release()
                if command.is_given_up:
                    end_command(command, stopped)
                wait_for(command, stopped)
                raise
            stopped.allow(_REPORT_S)
            succeeded = _write(arguments, outputs, session)
            tracer.close()
        end_command(command, stopped)
        code = wait_for(command, stopped)
        if not code:
            _check(arguments, session)
        return code or (0 if succeeded else _UNEXPECTED)
