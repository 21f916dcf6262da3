"""``gilscope snapshot``: asks a running ``serve`` for a report of its last minutes."""

import argparse
import sys
from operator import methodcaller
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from gilscope.commands.colours import add_color_option, wants_colour
from gilscope.commands.numbers import pid_number, seconds_between
from gilscope.commands.outputs import form_of, refuse_terminal, writable
from gilscope.errors import NoAnswer
from gilscope.series.past import LONGEST_S
from gilscope.system.atomic_output import write_atomically
from gilscope.text.printable import printable
from gilscope.web.client import Credentials, fetch
from gilscope.web.report import DEFAULT_S, FORMS

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

SUMMARY = "ask a running gilscope serve for a report of its last minutes"

EXAMPLES = """\
examples:
  gilscope snapshot                          # of the serve on this host, the last 5 minutes
  gilscope snapshot --last 1m -o now.html
  gilscope snapshot --last 10m --pid 4711 --full
  gilscope snapshot https://db7:9845 --cacert ca.pem --user ops --password-file pw
"""

_DEFAULT_URL = "http://127.0.0.1:9845"
_MOST_PASSWORD = 4096
_USAGE = 2


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "url",
        nargs="?",
        type=_url,
        default=_DEFAULT_URL,
        metavar="URL",
        help=f"where it serves (default: {_DEFAULT_URL})",
    )
    parser.add_argument(
        "--last",
        type=seconds_between(1, LONGEST_S),
        default=f"{DEFAULT_S // 60}m",
        metavar="TIME",
        help=f"of the last TIME, up to {LONGEST_S // 60}m, or since it traces (default: "
        f"{DEFAULT_S // 60}m)",
    )
    parser.add_argument(
        "-p", "--pid", type=pid_number, metavar="PID", help="of this process (default: of all)"
    )
    parser.add_argument(
        "--format",
        choices=tuple(FORMS),
        metavar="FORMAT",
        help=f"form of the report: {', '.join([*FORMS][:-1])} or {[*FORMS][-1]} "
        "(default: what the name of -o ends in, else text)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=writable,
        metavar="FILE",
        help="write it to FILE, not to stdout",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="print the whole report and not one screen of it; in a file it is whole anyway",
    )
    add_color_option(parser)
    parser.add_argument(
        "--cacert", type=Path, metavar="FILE", help="trust certificates that FILE vouches for"
    )
    parser.add_argument("--cert", type=Path, metavar="FILE", help="show the certificate in FILE")
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help="whose key is in FILE (default: in the same)"
    )
    parser.add_argument("--user", default="", metavar="NAME", help="who asks")
    parser.add_argument(
        "--password-file", type=Path, metavar="FILE", help="whose first line is the password"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the report and return the exit code; raises GilscopeError."""
    try:
        refuse_terminal([arguments.format] if arguments.output is None else [])
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return _USAGE
    report = fetch(f"{arguments.url}/report?{_query(arguments)}", _credentials(arguments))
    if arguments.output is not None:
        write_atomically(arguments.output, methodcaller("write", report))
        return 0
    sys.stdout.flush()
    sys.stdout.buffer.write(report)
    sys.stdout.flush()
    return 0


def _query(arguments: argparse.Namespace) -> str:
    form = arguments.format or form_of(arguments.output)
    wanted = {"form": form if form in FORMS else "text", "last": f"{arguments.last:g}"}
    if arguments.pid is not None:
        wanted["pid"] = str(arguments.pid)
    if arguments.full or arguments.output is not None:
        wanted["full"] = "1"
    if arguments.output is None and wants_colour(arguments, sys.stdout):
        wanted["colour"] = "1"
    return urlencode(wanted)


def _credentials(arguments: argparse.Namespace) -> Credentials:
    password = ""
    if arguments.password_file is not None:
        try:
            with arguments.password_file.open(encoding="utf-8") as file:
                password = file.readline(_MOST_PASSWORD).rstrip("\n")
        except (OSError, ValueError) as error:
            raise NoAnswer(
                f"cannot read the password in {printable(str(arguments.password_file))}: {error}",
                remedy="It is the first line of the file.",
            ) from error
    return Credentials(arguments.user, password, arguments.cacert, arguments.cert, arguments.key)


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_whole = False
    if not is_whole:
        raise argparse.ArgumentTypeError(f"{printable(text)!r} is not http://HOST:PORT")
    return text.rstrip("/")
