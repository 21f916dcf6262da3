"""``gilscope doctor``: says what works here, what is missing, and what fixes it."""

import argparse
import sys

from gilscope.commands.colours import add_color_option, wants_colour
from gilscope.commands.numbers import pid_number
from gilscope.doctor.examine import examine
from gilscope.model.diagnosis import Diagnosis, first_failure
from gilscope.reports.doctor import json as doctor_json
from gilscope.reports.doctor import text as doctor_text
from gilscope.text.printable import printable

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

SUMMARY = "say what works on this machine, what is missing, and the command that fixes it"

EXAMPLES = """\
examples:
  gilscope doctor                            # this machine
  gilscope doctor -p 4711                    # and whether process 4711 can be traced
  gilscope doctor --all                      # and every Python on this host
  gilscope doctor --format json | jq .ok
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-p",
        "--pid",
        type=pid_number,
        metavar="PID",
        help="also check process PID; nothing is attached",
    )
    parser.add_argument(
        "--all", action="store_true", help="also list every Python on this host, a line each"
    )
    parser.add_argument(
        "--format", choices=["text", "json"], default="text", help="form of the report"
    )
    add_color_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Look, report, and return 0 or the exit code of the first thing that is missing."""
    with _Waiting():
        diagnosis = examine(arguments.pid, all_pythons=arguments.all)
    if arguments.format == "json":
        report = doctor_json.render(diagnosis)
    else:
        report = doctor_text.render(diagnosis, colour=wants_colour(arguments, sys.stdout))
    sys.stdout.write(report)
    sys.stdout.flush()
    if diagnosis.exit_code and arguments.format == "text" and not sys.stdout.isatty():
        # Who sends the report elsewhere still sees why the exit code is what it is.
        print(f"error: {_first_failure(diagnosis)}", file=sys.stderr)
    return diagnosis.exit_code


def _first_failure(diagnosis: Diagnosis) -> str:
    failure = first_failure(diagnosis.checks)
    if failure is None and diagnosis.process is not None:
        failure = first_failure(diagnosis.process.checks)
    return "" if failure is None else printable(failure.found)


class _Waiting:
    """Says on a terminal what takes so long, and wipes it away."""

    _TEXT = "Compiling the probes, which takes a few seconds ..."

    def __enter__(self) -> None:
        self._tell(self._TEXT)

    def __exit__(self, *_: object) -> None:
        self._tell("\r\033[K")

    def _tell(self, text: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(text)
            sys.stderr.flush()
