"""``gilscope dump``: says once what all threads of a process do, without stopping it."""

import argparse
import sys
from operator import methodcaller

from gilscope.commands.colours import add_color_option, wants_colour
from gilscope.commands.numbers import pid_number
from gilscope.commands.outputs import form_of, writable
from gilscope.dump.process import found
from gilscope.dump.take import take
from gilscope.errors import NotPython
from gilscope.model.moment.dump import Dump
from gilscope.process.access import while_alive
from gilscope.process.remote_read import TornRead
from gilscope.process.watch import ProcessWatch
from gilscope.reports.dump import json as dump_json
from gilscope.reports.dump import text as dump_text
from gilscope.system.atomic_output import write_atomically

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

SUMMARY = "show once what all threads of a process do, who holds the GIL and who waits for it"

EXAMPLES = """\
examples:
  gilscope dump -p 4711                      # all stacks, and what each thread waits for
  gilscope dump -p 4711 -o hang.json         # the same for programs
  gilscope dump -p 4711 --format json | jq -r '.verdict[]'
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-p", "--pid", type=pid_number, required=True, metavar="PID", help="of this process"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        help="form of the dump (default: what the name of -o ends in, else text)",
    )
    parser.add_argument(
        "-o", "--output", type=writable, metavar="FILE", help="write it to FILE, not to stdout"
    )
    add_color_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the dump and return the exit code; raises GilscopeError."""
    dump = _dump(arguments.pid)
    form = arguments.format or form_of(arguments.output)
    is_shown = arguments.output is None
    if form == "json":
        report = dump_json.render(dump)
    else:
        colour = is_shown and wants_colour(arguments, sys.stdout)
        report = dump_text.render(dump, colour=colour)
    if is_shown:
        sys.stdout.write(report)
        sys.stdout.flush()
    else:
        write_atomically(arguments.output, methodcaller("write", report.encode()))
    return 0


def _dump(pid: int) -> Dump:
    with while_alive(pid), ProcessWatch() as watch, found(pid, watch.reader) as subject:
        try:
            return take(subject)
        except TornRead as error:
            raise NotPython(
                f"process {pid} changed while gilscope inspected it ({error})",
                remedy="It may be starting or ending: try again.",
            ) from error
