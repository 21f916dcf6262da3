"""The options of ``serve`` for captures."""

import argparse
from pathlib import Path

from gilscope.commands.numbers import seconds_between, whole_number
from gilscope.text.printable import printable

__all__ = ["add_capture_options", "check_capture_options"]

_LEAST_S, _LONGEST_S = 0.01, 3600
_FILES, _MOST_FILES = 50, 100_000
_OWNER_ONLY = 0o700


def add_capture_options(parser: argparse.ArgumentParser) -> None:
    """Declare ``--capture-above`` and what belongs to it."""
    parser.add_argument(
        "--capture-above",
        type=seconds_between(_LEAST_S, _LONGEST_S),
        metavar="TIME",
        help="while a thread has waited for the GIL for longer than TIME, such as 500ms, write to "
        "stderr what all threads of the process do, at most once a minute for each process "
        "(default: never)",
    )
    parser.add_argument(
        "--capture-dir",
        type=_folder,
        metavar="DIR",
        help="write these captures to files in DIR, which only their owner may read",
    )
    parser.add_argument(
        "--capture-files",
        type=whole_number(_MOST_FILES),
        default=_FILES,
        metavar="N",
        help=f"keep the last N of these files (default: {_FILES})",
    )


def check_capture_options(arguments: argparse.Namespace, *, has_targets: bool) -> None:
    """End with the usage where one of them says nothing without another, or without processes."""
    if arguments.capture_above is not None and not has_targets:
        arguments.complain("--capture-above needs processes: -p, --match or --all")
    if arguments.capture_dir is not None and arguments.capture_above is None:
        arguments.complain("--capture-dir needs --capture-above: there are no captures without it")
    if not arguments.capture_files:
        arguments.complain("--capture-files must be 1 or more")


def _folder(text: str) -> Path:
    folder = Path(text)
    try:
        folder.mkdir(mode=_OWNER_ONLY, exist_ok=True)
        next(folder.iterdir(), None)
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"cannot use {printable(text)} as a folder: {error.strerror}"
        ) from error
    return folder
