"""``gilscope stm``: what the logs of PyPy-STM say about conflicts."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from gilscope.commands.colours import add_color_option, wants_colour
from gilscope.commands.following.stm_follow import add_follow, report_of_files
from gilscope.commands.progress import Progress
from gilscope.errors import NotAnStmLog
from gilscope.model.stm_log import LogFile, StmReport
from gilscope.reports.stm_log import original
from gilscope.reports.stm_log import text as stm_log_text
from gilscope.stm_log.merge import MERGES
from gilscope.stm_log.read import STANDARD_INPUT, read_log
from gilscope.stm_log.reader import SEMANTICS, TABLES, Reading
from gilscope.system.atomic_output import write_atomically
from gilscope.text.printable import printable

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

SUMMARY = "say which transactions of PyPy-STM collide, and what that costs"

EXAMPLES = """\
examples:
  PYPYSTM=app.log pypy-stm app.py            # writes the log
  gilscope stm report app.log
  gilscope stm report app.log app.log.fork*  # a process and its forks, as one
  gilscope stm report app.log --format html -o app.html
  xz -dc old.log.xz | gilscope stm report -
  gilscope stm follow app.log                # while the program runs, every 5 s
  gilscope stm follow 'logs/*.log' --format json | jq .logs
"""

_FORMATS = ("text", "json", "html")
_DONE, _UNEXPECTED, _USAGE = 0, 1, 2


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", required=True)
    report = subcommands.add_parser("report", help="report on logs that have been written")
    report.add_argument(
        "files", nargs="+", metavar="FILE", help="logs; - stands for standard input"
    )
    report.add_argument(
        "-n",
        "--maxcount",
        type=_count,
        metavar="MAXCOUNT",
        help="show at most this many conflicts of each log "
        f"(default: {stm_log_text.MOST_ENTRIES}; with --compat as many as the original)",
    )
    report.add_argument(
        "--format",
        choices=_FORMATS,
        help="form of the report (default: what the name of -o ends in, else text)",
    )
    report.add_argument("-o", "--output", metavar="FILE", help="write to FILE, not to stdout")
    report.add_argument(
        "--compat",
        action="store_true",
        help="exactly the figures of the original print_stm_log.py, with what it loses; "
        "text in its form",
    )
    report.add_argument(
        "--semantics",
        choices=SEMANTICS,
        help="how to charge conflicts (default: S1 or S2, by the log's kind)",
    )
    report.add_argument(
        "--events",
        choices=TABLES,
        metavar="TABLE",
        help=f"which number is which event: {', '.join(TABLES[:-1])} or {TABLES[-1]} "
        "(default: found out)",
    )
    report.add_argument(
        "--merge",
        choices=MERGES,
        default="forks",
        help="which logs to add up in one report (default: those of a process and its forks)",
    )
    report.add_argument(
        "--sources",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="look for source files below DIR too; may be given several times",
    )
    add_color_option(report)
    report.set_defaults(run_subcommand=_report)
    add_follow(subcommands.add_parser("follow", help="report every few seconds what logs gain"))


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number of conflicts")
    return number


def run(arguments: argparse.Namespace) -> int:
    """Do what the subcommand says and return the exit code; raises GilscopeError."""
    subcommand: Callable[[argparse.Namespace], int] = arguments.run_subcommand
    return subcommand(arguments)


def _report(arguments: argparse.Namespace) -> int:
    if arguments.files.count(STANDARD_INPUT) > 1:
        print("error: standard input can be read once", file=sys.stderr)
        return _USAGE
    reading = Reading(arguments.events, arguments.semantics, arguments.compat)
    files, failures = _read_all(dict.fromkeys(arguments.files), reading)
    for failure in failures[: None if files else -1]:
        print(f"error: {printable(str(failure))}", file=sys.stderr)
    if not files:
        raise failures[-1]
    report = report_of_files(files, arguments.merge, arguments.sources, arguments.maxcount)
    try:
        _write(report, arguments)
    except OSError as error:
        if arguments.output is None:
            raise
        print(
            f"error: cannot write {printable(arguments.output)}: {error.strerror}", file=sys.stderr
        )
        return _UNEXPECTED
    return failures[-1].exit_code if failures else _DONE


def _read_all(names: Iterable[str], reading: Reading) -> tuple[list[LogFile], list[NotAnStmLog]]:
    # One that is none must not cost the others their report.
    files: list[LogFile] = []
    failures: list[NotAnStmLog] = []
    for name in names:
        with Progress(f"Reading {printable(name)}") as progress:
            try:
                files.append(read_log(name, reading, progress.tell))
            except NotAnStmLog as failure:
                failures.append(failure)
    return files, failures


def _form_of(file: str | None) -> str:
    ending = "" if file is None else file.lower().rpartition(".")[2]
    return ending if ending in _FORMATS else "text"


def _write(report: StmReport, arguments: argparse.Namespace) -> None:
    form = arguments.format or _form_of(arguments.output)
    if form != "text":
        text = _RENDERERS[form](report)
    elif arguments.compat:
        text = original.render(report)
    else:
        colour = arguments.output is None and wants_colour(arguments, sys.stdout)
        text = stm_log_text.render(report, colour=colour)
    if arguments.output is not None:
        content = text.encode("utf-8")
        write_atomically(arguments.output, lambda file: file.write(content))
        return
    if hasattr(sys.stdout, "reconfigure"):
        # Names may be more than the terminal's encoding knows.
        sys.stdout.reconfigure(errors="replace")
    sys.stdout.write(text)
    sys.stdout.flush()


def _json(report: StmReport) -> str:
    from gilscope.reports.stm_log import json as stm_log_json  # noqa: PLC0415 - imported when it is asked for

    return stm_log_json.render(report)


def _html(report: StmReport) -> str:
    from gilscope.reports.stm_log import html as stm_log_html  # noqa: PLC0415 - likewise

    return stm_log_html.render(report)


_RENDERERS: Final[Mapping[str, Callable[[StmReport], str]]] = {"json": _json, "html": _html}
