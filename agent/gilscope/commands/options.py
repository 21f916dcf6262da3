"""The options that commands share, and those that choose which processes they trace."""

import argparse
import re

from gilscope.commands.numbers import pid_number
from gilscope.discovery.selection import Choice, choose_all, choose_matching, choose_pids
from gilscope.model.application import Application
from gilscope.model.kinds import Mode

__all__ = [
    "add_application_option",
    "add_locks_option",
    "add_method_option",
    "add_mode_option",
    "add_native_stacks_option",
    "add_stacks_option",
    "add_target_options",
    "add_transactions_option",
    "chosen_application",
    "chosen_method",
    "chosen_targets",
    "has_targets",
    "shares_probes",
]


_WORDS = {
    Mode.AUTO: "auto observes holds too, in windows that the overhead budget allows",
    Mode.CONTENTION: "contention observes waits, and costs nothing while no thread waits",
    Mode.FULL: "full observes every hold, at about a microsecond each",
}


def add_mode_option(parser: argparse.ArgumentParser, *modes: Mode) -> None:
    """Declare ``--mode`` with *modes*, of which the first is the default."""
    words = "; ".join(_WORDS[mode] for mode in modes)
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in modes],
        default=modes[0].value,
        help=f"what to observe: {words} (default: {modes[0].value})",
    )


def add_method_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--method``."""
    parser.add_argument(
        "--method",
        choices=["auto", "sites", "libc"],
        default="auto",
        help="how to find the GIL; auto tries the call sites, then libc (default: auto)",
    )


def add_stacks_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--no-stacks``."""
    parser.add_argument(
        "--no-stacks",
        dest="stacks",
        action="store_false",
        help="do not read stacks: waits cost less, but who kept whom waiting is not reported",
    )


def add_locks_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--locks``."""
    parser.add_argument(
        "--locks",
        action="store_true",
        help="trace the locks that threads wait for as well, the program's, objects' and the "
        "interpreter's, and Pythons that run without a GIL (CPython 3.13 and later)",
    )


def add_native_stacks_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--native-stacks``."""
    parser.add_argument(
        "--native-stacks",
        action="store_true",
        help="of a call into C that keeps the GIL tell also which functions of C called each other "
        "in it, by samples of the thread's registers and stack",
    )


def add_application_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--app``."""
    parser.add_argument(
        "--app",
        action="append",
        type=_own_code,
        metavar="CODE",
        help="whose code is told first: a folder, as the process names its files, or the import "
        "name of a package; may be given several times (default: all that neither comes with "
        "Python nor is installed in site-packages)",
    )


def chosen_application(arguments: argparse.Namespace) -> Application:
    """Return whose code the user means."""
    said: list[str] = arguments.app or []
    return Application(
        folders=tuple(each.rstrip("/") for each in said if each.startswith("/")),
        packages=tuple(each for each in said if not each.startswith("/")),
    )


def chosen_method(arguments: argparse.Namespace) -> str | None:
    """Return the method that the user insists on, or None."""
    return None if arguments.method == "auto" else str(arguments.method)


def add_target_options(parser: argparse.ArgumentParser, *, has_default: bool) -> None:
    """Declare ``--pid``, ``--match`` and ``--all``; with *has_default* the last is the default."""
    targets = parser.add_mutually_exclusive_group()
    targets.add_argument(
        "-p",
        "--pid",
        type=pid_number,
        action="append",
        metavar="PID",
        help="trace process PID and its children; may be given several times",
    )
    targets.add_argument(
        "--match",
        type=_pattern,
        metavar="REGEX",
        help="trace the Pythons whose command line matches REGEX, present and future ones",
    )
    default = " (the default)" if has_default else ""
    targets.add_argument(
        "--all",
        action="store_true",
        help=f"trace every Python on this host but gilscope itself, future ones too{default}",
    )
    parser.add_argument(
        "--own-probes",
        action="store_true",
        help="with --match and --all: put probes into each process by itself, not once into all "
        "that run the same interpreter, so that none that is not traced ever runs into them; for "
        "few processes, as each makes those after it slower to attach to",
    )


def add_transactions_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--transactions``."""
    parser.add_argument(
        "--transactions",
        action="store_true",
        help="trace also the transactions of programs that are no Python (compiled with GCC's "
        "-fgnu-tm); without it those given by -p themselves, and PyPy-STM",
    )


def shares_probes(arguments: argparse.Namespace) -> bool:
    """Return whether processes that run the same interpreter share probes: those searched for."""
    is_search = not arguments.pid and not vars(arguments).get("command")
    return is_search and not arguments.own_probes


def has_targets(arguments: argparse.Namespace) -> bool:
    """Return whether the user has chosen any process."""
    return bool(arguments.pid) or arguments.match is not None or bool(arguments.all)


def chosen_targets(arguments: argparse.Namespace) -> Choice:
    """Return which processes are wanted beside those that are named by their pid."""
    if arguments.pid:
        return choose_pids()
    if arguments.match is not None:
        return choose_matching(arguments.match)
    return choose_all()


def _own_code(text: str) -> str:
    if text.startswith("/") and text.strip("/"):
        return text
    if all(part.isidentifier() for part in text.split(".")):
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r} is neither an absolute folder nor the name of a package"
    )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        raise argparse.ArgumentTypeError(f"not a regular expression: {error}") from error
