"""Starts the command that `record` is to trace, and ends it as the user would expect."""

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence

from gilscope.commands.recording.recorder import Recorder
from gilscope.commands.recording.watching import Watching
from gilscope.commands.session import attach_named
from gilscope.errors import NotPython
from gilscope.gil.tracing.command import HeldCommand
from gilscope.model.session import Session
from gilscope.system import ending
from gilscope.text.printable import printable
from gilscope.tracing.tracer import Tracer

__all__ = ["end_command", "not_started", "pass_on", "record_started", "wait_for"]

_COMMAND_S = 10.0
"""Timeout for the end of the command after a signal that may not have reached it."""
_NOT_EXECUTABLE = 126
_NOT_FOUND = 127


def record_started(
    arguments: argparse.Namespace,
    tracer: Tracer,
    command: HeldCommand,
    waits_for: list[HeldCommand],
    stopped: ending.Told,
) -> Session:
    """Trace *command* and its children until it ends and return what was recorded.

    *waits_for* has it for as long as it is not known to be Python. Raises GilscopeError where
    neither it nor any of its children is.
    """
    with Recorder(arguments, tracer) as recorder:
        watching = Watching(arguments, tracer, recorder, [command.pid])
        # Until its interpreter is there it is stepped; children may be Python before it is.
        watching.is_held = lambda pid: pid == command.pid and command in waits_for
        recorder.on_first = command.give_up
        began_s = time.monotonic()
        with watching.searching():
            waits_for.append(command)
            try:
                command.run_to_interpreter(arguments.duration)
                recorder.on_first = lambda: None
                recorder.add(attach_named(tracer, command.pid))
                command.release()
            except NotPython:
                command.release()
                if not recorder.has_any:
                    raise
            finally:
                waits_for.clear()
            if arguments.duration is not None:
                arguments.duration = max(0.0, arguments.duration - (time.monotonic() - began_s))
            watching.until_end(stopped, is_running=lambda: command.is_running)
        session = watching.session()
        if (
            not (session.recordings or session.transactions or session.locks)
            and tracer.gils.without_gil
        ):
            raise tracer.gils.without_gil
        return session


def not_started(name: str, error: OSError) -> int:
    """Say that there is no command *name*, and return the exit code that shells have for it."""
    print(f"error: cannot start {printable(name)}: {error.strerror}", file=sys.stderr)
    if not isinstance(error, FileNotFoundError):
        return _NOT_EXECUTABLE
    if "/" not in name:
        print(
            f"To trace running processes by their command line: --match {printable(name)}",
            file=sys.stderr,
        )
    return _NOT_FOUND


def pass_on(number: int, waits_for: Sequence[HeldCommand]) -> None:
    """Let those that are waited for get signal *number*, or give them up."""
    for command in waits_for:
        if number == signal.SIGTERM:
            with contextlib.suppress(ProcessLookupError):
                os.kill(command.pid, number)
        else:
            # Ctrl-C has reached it by itself, and it may not care.
            command.give_up()


def wait_for(command: HeldCommand, stopped: ending.Told) -> int:
    """Wait for the end of *command* and return its exit code."""
    # It may take its time to clean up, and Ctrl-C has certainly reached it.
    stopped.allow(_COMMAND_S, from_terminal_s=None)
    return command.wait()


def end_command(command: HeldCommand, stopped: ending.Told) -> None:
    """End *command*, if it has not ended and the user's signal has not reached it."""
    # Ctrl-C has reached the command too, and it may take its time to clean up. Any other end is
    # gilscope's alone.
    if not command.has_ended and stopped.number != signal.SIGINT:
        with contextlib.suppress(ProcessLookupError):
            os.kill(command.pid, stopped.number or signal.SIGTERM)
