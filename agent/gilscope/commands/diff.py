"""``gilscope diff``: says what has changed from one recording to another."""

import argparse
import json
import sys
from operator import methodcaller
from pathlib import Path

from gilscope.commands.options import add_application_option, chosen_application
from gilscope.commands.outputs import writable
from gilscope.errors import LimitPassed, NotAReport
from gilscope.model.application import Application
from gilscope.reports.comparison import markdown, text
from gilscope.system.atomic_output import write_atomically
from gilscope.text.printable import printable
from gilscope.verdict.figures import Figures, Unreadable, figures_of
from gilscope.verdict.limits import NAMES, Limit, limit

__all__ = ["EXAMPLES", "SUMMARY", "add_limit_option", "check_limits", "prepare_parser", "run"]

SUMMARY = "compare two recordings: is it better since the change?"

EXAMPLES = """\
examples:
  gilscope diff before.json after.json
  gilscope diff before.json after.json --fail-if 'waiting change > 10%'
  gilscope diff before.json after.json --format markdown >>"$GITHUB_STEP_SUMMARY"
"""

_FORMS = {"text": text, "markdown": markdown}
_LARGEST = 256 << 20
"""Bytes of a report that is read."""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    for name in ("before", "after"):
        parser.add_argument(
            name,
            type=Path,
            metavar=name.upper(),
            help="a report of record or snapshot as json",
        )
    add_limit_option(parser, has_before=True)
    parser.add_argument(
        "--format",
        choices=tuple(_FORMS),
        default="text",
        help="form of the comparison (default: text)",
    )
    parser.add_argument(
        "-o", "--output", type=writable, metavar="FILE", help="write it to FILE, not to stdout"
    )
    add_application_option(parser)


def add_limit_option(parser: argparse.ArgumentParser, *, has_before: bool) -> None:
    """Declare ``--fail-if``; *has_before*: of changes, too."""

    def read(words: str) -> Limit:
        try:
            return limit(words, has_before=has_before)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    example = "'waiting change > 10%%'" if has_before else "'waiting > 0.2'"
    more = ", each with `change` behind it as well" if has_before else ""
    parser.add_argument(
        "--fail-if",
        action="append",
        type=read,
        default=[],
        dest="limits",
        metavar="LIMIT",
        help=f"end with code {LimitPassed.exit_code} if LIMIT is passed, such as {example}; may be "
        f"given several times; of {', '.join(NAMES)}{more}",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison and return the exit code; raises GilscopeError."""
    application = chosen_application(arguments)
    before, after = (_figures(path, application) for path in (arguments.before, arguments.after))
    shown = _FORMS[arguments.format](before, after)
    if arguments.output is None:
        sys.stdout.write(shown)
        sys.stdout.flush()
    else:
        write_atomically(arguments.output, methodcaller("write", shown.encode()))
    check_limits(arguments.limits, after, before)
    return 0


def check_limits(limits: list[Limit], now: Figures, before: Figures | None = None) -> None:
    """Raise LimitPassed where *now*, or its change since *before*, passes one of *limits*."""
    passed = [words for each in limits if (words := each.passed_by(now, before))]
    if passed:
        raise LimitPassed("; ".join(passed))


def _figures(path: Path, application: Application) -> Figures:
    try:
        with path.open(encoding="utf-8") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise Unreadable(f"it is larger than {_LARGEST >> 20} MB")
        return figures_of(json.loads(content), application)
    except OSError as error:
        raise NotAReport(f"cannot read {printable(str(path))}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        words = str(error) if isinstance(error, Unreadable) else f"it is no JSON: {error}"
        raise NotAReport(f"cannot compare {printable(str(path))}: {printable(words)}") from error
