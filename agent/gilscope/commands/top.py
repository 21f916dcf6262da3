"""``gilscope top``: traces processes and shows what they wait for in the terminal, live."""

import argparse
import contextlib
import logging
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from gilscope.commands.numbers import seconds_between
from gilscope.commands.options import (
    add_application_option,
    add_locks_option,
    add_method_option,
    add_mode_option,
    add_stacks_option,
    add_target_options,
    chosen_application,
    chosen_targets,
    shares_probes,
)
from gilscope.commands.session import attach_tree, new_tracer, tracing_session
from gilscope.discovery.agent_stats import AgentReader
from gilscope.discovery.scanner import Scanner
from gilscope.doctor.explain import require_processes
from gilscope.exporter.source import Source
from gilscope.gil.calibration.measure import measure_trap_costs
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import begin_loading
from gilscope.model.kinds import Mode
from gilscope.model.stack import Frame
from gilscope.process.files.source_files import SourceLines
from gilscope.system import ending
from gilscope.system.rlimits import allow_many
from gilscope.text.log_lines import LogLines

if TYPE_CHECKING:
    from gilscope.top.app import TopApp

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

SUMMARY = "show in the terminal, live, which Python processes wait for the GIL and because of whom"

EXAMPLES = """\
examples:
  gilscope top                               # every Python on this host
  gilscope top -p 4711                       # this process and its children
  gilscope top --match 'gunicorn|celery'     # by command line
  gilscope top -p 4711 --mode auto           # holds too, in windows of full mode
  gilscope top -p 4711 --locks               # locks too, and Pythons without a GIL
"""

_TICK_S = 0.25
_HOLDERS_CPU_SHARE = 0.002
"""Of one core: what sampling the holders takes at the most."""
_CLOSING_S = 10.0
"""Timeout for removing the probes, after the view has ended in time."""
_LEAST_INTERVAL_S, _MOST_INTERVAL_S = 0.1, 3600.0
_PLAIN_SCREEN = b"\x1b[?2004l\x1b[?7h\x1b[?1004l\x1b[?1049l\x1b[?25h"
"""Pasting, wrapping, focus, screen and cursor as they are outside of the view."""
_USAGE = 2
_MOST_PROBLEMS = 100
_DUMB = {"", "dumb", "unknown"}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_target_options(parser, has_default=True)
    parser.add_argument(
        "--interval",
        type=seconds_between(_LEAST_INTERVAL_S, _MOST_INTERVAL_S),
        default="1",
        metavar="TIME",
        help="time between two snapshots, at least 0.1 s (default: 1s)",
    )
    add_mode_option(parser, Mode.CONTENTION, Mode.FULL, Mode.AUTO)
    add_method_option(parser)
    add_locks_option(parser)
    add_stacks_option(parser)
    add_application_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show until q, Ctrl-C, SIGINT or SIGTERM and return the exit code; raises GilscopeError."""
    unfit = _what_is_unfit()
    if unfit:
        print(
            f"error: top needs a terminal, but {unfit}\n"
            "For a report of one process use: gilscope record -p PID -d SECONDS\n"
            "For figures all the time use: gilscope serve --all",
            file=sys.stderr,
        )
        return _USAGE
    require_processes(named=bool(arguments.pid))
    allow_many()
    print("Loading the probes.", file=sys.stderr)
    probe = GilProbe(begin_loading(discover=True))
    view = _View()
    # Until its end the probes are taken out in order, whatever signal comes.
    with (
        ending.told(lambda _: view.end(), last_act=_terminal_restored()) as stopped,
        _ended_by_hangup(view),
        _problems_kept() as problems,
        probe,
    ):
        code = _show(arguments, probe, problems, view)
        stopped.allow(_CLOSING_S)
    return code


class _View:
    """What is to end when a signal comes."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._is_over = False
        self._app: TopApp | None = None

    def begin(self, app: "TopApp") -> bool:
        """Let *app* be it; return whether it is still wanted."""
        with self._turn:
            self._app = app
            return not self._is_over

    def end(self) -> None:
        """End it, or do not let it begin. Any thread may call this."""
        with self._turn:
            self._is_over = True
            if self._app is not None:
                self._app.end_soon()


@contextlib.contextmanager
def _ended_by_hangup(view: _View) -> Iterator[None]:
    """Have SIGHUP end *view* in order, and then the process, unless it is ignored, as by nohup."""
    # It may come while the terminal is still there, which is to be left as it was.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL:
        yield
        return
    has_come = threading.Event()

    def end(*_: object) -> None:
        has_come.set()
        view.end()

    signal.signal(signal.SIGHUP, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        if has_come.is_set():
            os.kill(os.getpid(), signal.SIGHUP)


def _terminal_restored() -> Callable[[], None]:
    """Return what brings the terminal back into the state that it is in now."""
    attributes = termios.tcgetattr(sys.stdin.fileno())

    def restore() -> None:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, attributes)
        os.write(sys.stderr.fileno(), _PLAIN_SCREEN)

    return restore


def _show(
    arguments: argparse.Namespace, probe: GilProbe, problems: "_Problems", view: _View
) -> int:
    # It brings all of textual with it, which no other command is to pay for. Its extension of the
    # keyboard protocol, which old terminals print as text, is of no use here.
    os.environ.setdefault("TEXTUAL_DISABLE_KITTY_KEY", "1")
    from gilscope.top.app import TopApp  # noqa: PLC0415 - see above
    from gilscope.top.header import Settings  # noqa: PLC0415 - see above

    plan = ObservationPlan(
        Mode(arguments.mode),
        costs=measure_trap_costs(probe),
        reads_stacks=arguments.stacks,
        holders_cpu_share=_HOLDERS_CPU_SHARE,
        shares_probes=shares_probes(arguments),
    )
    tracer = new_tracer(arguments, probe, plan, has_locks=arguments.locks)
    agent = AgentReader(tracer, time.monotonic_ns())
    pids = arguments.pid or ()
    for pid in pids:
        # A process that was named must be traceable; what is only searched for may be absent.
        attach_tree(tracer, pid)
    scanner = Scanner(tracer, chosen_targets(arguments), pids)
    source = Source(agent.read, tracer.observe, scanner.refusals, probe.bcc_version)
    settings = Settings(
        arguments.mode, arguments.interval, application=chosen_application(arguments)
    )
    with tracing_session(tracer, scanner, _TICK_S):
        app = TopApp(
            source,
            settings,
            read_sources=_sources,
            count_problems=lambda: problems.count,
        )
        if view.begin(app):
            # Without the mouse, text can be marked and copied as in any other command's output.
            app.run(mouse=False)
    return app.return_code or 0


def _sources(pid: int, frames: Iterable[Frame]) -> dict[tuple[str, int], str]:
    with SourceLines(pid) as source:
        return source.read(frames)


class _Problems(logging.Handler):
    """Keeps what is logged while the screen is in use."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(LogLines())
        self.count = 0
        self.kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep *record*, if there are not too many yet."""
        self.count += 1
        if len(self.kept) < _MOST_PROBLEMS:
            self.kept.append(self.format(record))


@contextlib.contextmanager
def _problems_kept() -> Iterator[_Problems]:
    problems = _Problems()
    root = logging.getLogger()
    root.addHandler(problems)
    try:
        yield problems
    finally:
        root.removeHandler(problems)
        for text in problems.kept:
            print(text, file=sys.stderr)
        more = problems.count - len(problems.kept)
        if more:
            print(f"and {more} more", file=sys.stderr)


def _what_is_unfit() -> str:
    """Return why there can be no live view; empty: there can."""
    for name, stream in (
        ("input", sys.stdin),
        ("output", sys.stdout),
        ("error", sys.stderr),
    ):
        if stream is None or not stream.isatty():
            return f"standard {name} is none"
    terminal = os.environ.get("TERM", "")
    if terminal in _DUMB:
        return f"TERM is {terminal!r}, which cannot move its cursor"
    return ""
