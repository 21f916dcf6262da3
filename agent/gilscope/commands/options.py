"""The options that commands share."""

import argparse

from gilscope.model import Mode

__all__ = ["add_method_option", "add_mode_option", "add_stacks_option", "chosen_method"]

_WORDS = {
    Mode.AUTO: "auto observes holds too, in windows that the overhead budget allows",
    Mode.CONTENTION: "contention observes waits, and costs nothing while nobody waits",
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
        help="do not read stacks: waits cost less, but it is not told who kept whom waiting",
    )


def chosen_method(arguments: argparse.Namespace) -> str | None:
    """Return the method that the user insists on, or None."""
    return None if arguments.method == "auto" else str(arguments.method)
