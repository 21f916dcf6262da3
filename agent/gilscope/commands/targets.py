"""The options that choose which processes a command traces."""

import argparse
import re

from gilscope.commands.numbers import pid_number
from gilscope.discovery import Choice, choose_all, choose_matching, choose_pids

__all__ = ["add_target_options", "add_transactions_option", "chosen_targets", "has_targets"]


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
        help=f"trace every Python on this host, future ones too{default}",
    )


def add_transactions_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--transactions``."""
    parser.add_argument(
        "--transactions",
        action="store_true",
        help="trace also the transactions of programs that are no Python (compiled with GCC's "
        "-fgnu-tm); without it those given by -p themselves, and PyPy-STM",
    )


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


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        raise argparse.ArgumentTypeError(f"not a regular expression: {error}") from error
