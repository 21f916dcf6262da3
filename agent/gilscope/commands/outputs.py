"""The forms in which a recording is reported, and where each report goes."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import methodcaller
from pathlib import Path
from typing import Final

from gilscope.commands.colours import add_color_option
from gilscope.errors import CannotWrite
from gilscope.model.session import Session
from gilscope.reports.renderers import RENDERERS, text
from gilscope.system.atomic_output import check_writable, write_atomically
from gilscope.text.printable import printable
from gilscope.text.units import counted
from gilscope.values import dataclass

__all__ = [
    "FORMATS",
    "Output",
    "UnfitForm",
    "add_format_options",
    "chosen_outputs",
    "form_of",
    "refuse_terminal",
    "refuse_unfit",
    "wants_moment",
    "wants_snapshots",
    "wants_timeline",
    "writable",
    "write_rendered",
    "write_reports",
]

FORMATS = (
    *("text", "json", "html", "markdown", "collapsed", "speedscope"),
    *("pprof", "otlp-profiles", "perfetto", "openmetrics", "prometheus"),
)
"""Text for people, and what `RENDERERS` makes for programs."""

_FORM_OF_NAME: Final[Mapping[str, str]] = {
    ".txt": "text",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".folded": "collapsed",
    ".collapsed": "collapsed",
    ".speedscope.json": "speedscope",
    ".pb.gz": "pprof",
    ".pprof": "pprof",
    ".otlp.json": "otlp-profiles",
    ".perfetto.json": "perfetto",
    ".om": "openmetrics",
    ".openmetrics": "openmetrics",
    ".prom": "prometheus",
}
"""What the end of a file's name says of its content; of several, the longest."""

_NO_TEXT = {"pprof"}
"""What a terminal cannot show."""
_TIMELINES = {"perfetto"}
"""What cannot be made of sums alone."""
_MOMENTS = {"html"}
"""What shows when threads waited most."""
_HISTORIES = {"openmetrics"}
"""What is made of the sums at several times."""
_OF_TRANSACTIONS = ("text", "json", "html", "markdown", "collapsed", "speedscope", "pprof")
"""What reports of live transactions there are."""
_OF_LOCKS = (*_OF_TRANSACTIONS, "perfetto")
"""The same of locks."""


@dataclass(frozen=True, slots=True)
class Output:
    """One report that is wanted."""

    form: str
    """One of `FORMATS`."""
    file: Path | None
    """None: standard output."""


class UnfitForm(ValueError):
    """What was recorded cannot be reported in the form that is wanted."""


def add_format_options(parser: argparse.ArgumentParser) -> None:
    """Declare ``--format``, ``-o`` and ``--color``."""
    parser.add_argument(
        "--format",
        action="append",
        type=_output,
        dest="outputs",
        metavar="FORMAT[=FILE]",
        help=f"form of the report: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}; with =FILE it goes "
        "there; may be given several times (default: what the name of -o ends in, else text)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=writable,
        metavar="FILE",
        help="write the report of the format without a file to FILE, not to stdout",
    )
    add_color_option(parser)


def chosen_outputs(arguments: argparse.Namespace) -> tuple[Output, ...]:
    """Return the reports that *arguments* ask for; raises ValueError if they contradict."""
    outputs = tuple(arguments.outputs or [Output(form_of(arguments.output), None)])
    nowhere = [output.form for output in outputs if output.file is None]
    if len(nowhere) > 1:
        raise ValueError(
            f"{' and '.join(nowhere)} cannot go to the same place: give one of them a file with "
            f"--format {nowhere[-1]}=FILE"
        )
    if arguments.output is not None and not nowhere:
        raise ValueError(
            f"every format has a file of its own, so nothing is left for -o {arguments.output}"
        )
    outputs = tuple(Output(output.form, output.file or arguments.output) for output in outputs)
    files = [output.file.resolve() for output in outputs if output.file is not None]
    if len(set(files)) < len(files):
        raise ValueError("two reports cannot go to the same file")
    refuse_terminal(output.form for output in outputs if output.file is None)
    return outputs


def refuse_terminal(printed: Iterable[str]) -> None:
    """Raise ValueError if one of the forms that are *printed* is no text, and shown to people."""
    for form in _NO_TEXT.intersection(printed):
        if sys.stdout.isatty():
            raise ValueError(f"{form} is not for a terminal: give it a file with -o")


def form_of(file: Path | None) -> str:
    """Return the form that the name of *file* says, else text."""
    name = "" if file is None else file.name.lower()
    ends = [end for end in _FORM_OF_NAME if name.endswith(end)]
    return _FORM_OF_NAME[max(ends, key=len)] if ends else "text"


def wants_timeline(outputs: Sequence[Output]) -> bool:
    """Return whether one of *outputs* shows waits one by one, in the order in which they came."""
    return any(output.form in _TIMELINES for output in outputs)


def wants_moment(outputs: Sequence[Output]) -> bool:
    """Return whether one of *outputs* shows when threads waited most."""
    return any(output.form in _MOMENTS for output in outputs)


def wants_snapshots(outputs: Sequence[Output]) -> bool:
    """Return whether one of *outputs* shows how the sums have grown."""
    return any(output.form in _HISTORIES for output in outputs)


def refuse_unfit(outputs: Sequence[Output], *, has_locks: bool = False) -> None:
    """Raise UnfitForm where transactions, or locks, are not reported as one of *outputs*."""
    what, fit = ("locks", _OF_LOCKS) if has_locks else ("transactions", _OF_TRANSACTIONS)
    unfit = _unfit(outputs, fit)
    if unfit:
        raise UnfitForm(f"{what} are reported as {_as_words(fit, 'or')}, not as {unfit[0]}")


def _unfit(outputs: Sequence[Output], fit: Sequence[str]) -> list[str]:
    return sorted({output.form for output in outputs}.difference(fit))


def _as_words(forms: Sequence[str], last: str) -> str:
    *others, final = forms
    return " ".join(filter(None, (", ".join(others), last, final)))


def write_reports(
    outputs: Sequence[Output], session: Session, *, colour: bool = False, whole: bool = False
) -> bool:
    """Write all *outputs* of *session*; returns and raises what `write_rendered` does.

    Text on standard output is in *colour*, and the *whole* report or one screen. In a file it is
    whole: that does not scroll away.
    """

    def rendered(output: Output) -> str | bytes:
        is_shown = output.file is None
        if output.form == "text":
            return text(session, colour=colour and is_shown, whole=whole or not is_shown)
        return RENDERERS[output.form](session)

    for what, number, fit in (
        ("transactions", len(session.transactions), _OF_TRANSACTIONS),
        ("locks", len(session.locks), _OF_LOCKS),
    ):
        unfit = _unfit(outputs, fit)
        if number and unfit:
            print(
                f"{counted(number, 'process', 'processes')} with {what}: not in the report as "
                f"{' or '.join(unfit)}, but as {_as_words(fit, 'and')}",
                file=sys.stderr,
            )
    return write_rendered(outputs, rendered)


def write_rendered(outputs: Sequence[Output], render: Callable[[Output], str | bytes]) -> bool:
    """Write what *render* returns for each of *outputs*, and return whether that succeeded.

    What fails is said on stderr.

    Raises BrokenPipeError where nobody reads standard output any more.
    """
    succeeded = True
    # Standard output is last: whoever reads it may have gone, and the files must not miss that.
    for output in sorted(outputs, key=lambda output: output.file is None):
        try:
            _write(output, render(output))
        except Exception as error:
            if output.file is None and isinstance(error, BrokenPipeError):
                raise
            succeeded = False
            place = "standard output" if output.file is None else printable(str(output.file))
            print(
                f"error: cannot write the {output.form} report to {place}: {_reason(error)}",
                file=sys.stderr,
            )
    return succeeded


def _reason(error: Exception) -> str:
    if isinstance(error, CannotWrite):
        return str(error.__cause__.strerror if isinstance(error.__cause__, OSError) else error)
    return str(error.strerror) if isinstance(error, OSError) else repr(error)


def _output(text: str) -> Output:
    form, has_file, file = text.partition("=")
    if form not in FORMATS:
        raise argparse.ArgumentTypeError(
            f"there is no format {form!r} (choose from {', '.join(FORMATS)})"
        )
    return Output(form, writable(file) if has_file else None)


def writable(text: str) -> Path:
    """Return the file that an argument names; raises ArgumentTypeError if it cannot be written."""
    # Said now, and not when the recording that cannot be repeated is over.
    try:
        check_writable(text)
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"cannot write {printable(text)}: {error.strerror}"
        ) from error
    return Path(text)


def _write(output: Output, report: str | bytes) -> None:
    # What programs read has one encoding, whatever that of the terminal is.
    content = report.encode("utf-8") if isinstance(report, str) else report
    if output.file is not None:
        write_atomically(output.file, methodcaller("write", content))
        return
    if output.form == "text" and isinstance(report, str):
        sys.stdout.write(report)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    sys.stdout.flush()
