"""Whether a report is in colour: as the user says, as the environment says, or as fits."""

import argparse
import os
from collections.abc import Mapping
from typing import Final, TextIO

__all__ = ["add_color_option", "is_coloured", "wants_colour"]

_AUTO: Final = "auto"
_ALWAYS: Final = "always"
_PLAIN_TERMINALS: Final = {"dumb", "unknown"}


def add_color_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--color``."""
    parser.add_argument(
        "--color",
        choices=(_AUTO, _ALWAYS, "never"),
        default=_AUTO,
        metavar="WHEN",
        help="mark up the text with colours: auto (on a terminal, unless the environment has "
        "NO_COLOR or TERM=dumb; elsewhere where it has FORCE_COLOR), always or never "
        "(default: auto)",
    )


def wants_colour(arguments: argparse.Namespace, stream: TextIO) -> bool:
    """Return whether what goes to *stream* is to be in colour."""
    return is_coloured(arguments.color, os.environ, is_terminal=stream.isatty())


def is_coloured(when: str, environment: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Return whether text is to be in colour, as ``--color`` says *when*.

    NO_COLOR (no-color.org) and FORCE_COLOR (force-color.org) count where they are not empty; the
    first of them wins.
    """
    if when != _AUTO:
        return when == _ALWAYS
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return is_terminal and environment.get("TERM") not in _PLAIN_TERMINALS
