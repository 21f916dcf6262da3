"""The command line: chooses a command, prints failures, returns the exit code."""

import argparse
import contextlib
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn, Protocol, cast

import gilscope
from gilscope.errors import GilscopeError, NotPython, exit_codes
from gilscope.system import ending
from gilscope.system.shortage import explained_shortage
from gilscope.text.printable import printable

__all__ = ["COMMANDS", "build_parser", "main"]

_DESCRIPTION = (
    "Show which threads of running Python processes wait for the GIL, how long, and after what."
)
_LONGEST_LINE = 90
"""Of the list of exit codes."""
_SHELL_BASE = 128
"""A shell's exit code for a program that signal N has ended is this and N."""
_UNEXPECTED = 1
_USAGE = 2
_LAST_PID = 1 << 22
"""No kernel gives a process a higher number."""
_WITH_SIGNALS_OF_ITS_OWN = {"stm"}
"""`stm follow` reports on what it has read, and `stm report` ends by the default action."""


class Command(Protocol):
    """What a module in ``commands`` offers."""

    SUMMARY: str
    EXAMPLES: str

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it, and return the exit code."""


class _Commands(Mapping[str, Command]):
    """Imports each one when it is asked for: `stm` needs a quarter of what all of them do."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getitem__(self, name: str) -> Command:
        if name not in self._names:
            raise KeyError(name)
        return cast("Command", importlib.import_module(f"gilscope.commands.{name}"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


COMMANDS: Mapping[str, Command] = _Commands(
    "record", "top", "serve", "snapshot", "dump", "diff", "stm", "doctor", "export"
)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with arguments without printing what a terminal obeys."""

    def error(self, message: str) -> NoReturn:
        """End with the usage and *message*."""
        super().error(printable(message))


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands, or one that knows the options of *only* that command."""
    parser = _Parser(
        prog="gilscope",
        description=_DESCRIPTION,
        epilog=_exit_codes(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gilscope {gilscope.__version__}")
    commands = parser.add_subparsers(dest="name", metavar="COMMAND")
    for name in COMMANDS:
        if only not in {None, name}:
            commands.add_parser(name)
            continue
        command = COMMANDS[name]
        command.prepare_parser(
            commands.add_parser(
                name,
                help=command.SUMMARY,
                description=f"{command.SUMMARY[0].upper()}{command.SUMMARY[1:]}.",
                epilog=command.EXAMPLES,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )
    return parser


def _exit_codes() -> str:
    lines = ["exit codes:", ""]
    for code, words in exit_codes().items():
        entry = f"{code} {words}"
        if lines[-1] and len(lines[-1]) + len(entry) > _LONGEST_LINE:
            lines.append("")
        lines[-1] += f"  {entry}" if not lines[-1] else f"   {entry}"
    return "\n".join([*lines, "  (record -- COMMAND passes the command's own exit code on)", ""])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that *argv* names and return its exit code."""
    pids: tuple[int, ...] = ()
    try:
        arguments = _parsed(argv)
        pids = _named_pids(arguments)
        with _watched(arguments.name):
            if arguments.name != "doctor":  # which has more to say than that there is none
                _require_possible(pids)
            return COMMANDS[arguments.name].run(arguments)
    except GilscopeError as refusal:
        return _refused(refusal, pids)
    except BrokenPipeError:
        # The reader of our output has gone: nothing is left to do, and nothing to say.
        return 0
    except KeyboardInterrupt:
        # Whoever waits for gilscope, a shell for example, is to see what has ended it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        # Process 1 of a container is not ended by that.
        return _SHELL_BASE + signal.SIGINT
    except Exception as error:  # noqa: BLE001 - see below
        shortage = explained_shortage(error)
        if shortage is not None:
            return _refused(shortage, ())
        # What comes here is a defect, and whoever fixes it needs to know where.
        print(
            f"error: {type(error).__name__}: {error}\n"
            "This is a defect of gilscope: please report it with the lines below.\n"
            f"{''.join(traceback.format_exception(error))}",
            end="",
            file=sys.stderr,
        )
        return _UNEXPECTED


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    words = sys.argv[1:] if argv is None else argv
    parser = build_parser(words[0] if words and words[0] in COMMANDS else None)
    arguments = parser.parse_args(words)
    if arguments.name is None:
        # Who does not know the commands yet is shown them; a script has forgotten something.
        parser.print_help(sys.stderr)
        raise SystemExit(_USAGE)
    return arguments


@contextlib.contextmanager
def _watched(name: str) -> Iterator[None]:
    if name in _WITH_SIGNALS_OF_ITS_OWN:
        yield
    else:
        with ending.watch():
            yield


def _refused(refusal: GilscopeError, pids: Sequence[int]) -> int:
    try:
        from gilscope.doctor.explain import explained  # noqa: PLC0415 - only where one is refused

        error = explained(refusal, pids)
    except (OSError, RuntimeError, MemoryError, ImportError):
        error = refusal  # whatever keeps the cause from being found out has its part in it
    print(f"error: {error}", file=sys.stderr)
    if error.remedy:
        print(error.remedy, file=sys.stderr)
    return error.exit_code


def _named_pids(arguments: argparse.Namespace) -> tuple[int, ...]:
    # `record` takes one, other commands take several, some take none.
    named = getattr(arguments, "pid", None)
    return (named,) if isinstance(named, int) else tuple(named or ())


def _require_possible(pids: Sequence[int]) -> None:
    for pid in pids:
        if not 0 < pid <= _LAST_PID:
            raise NotPython(f"there is no process {pid}: pids go from 1 to {_LAST_PID}")
