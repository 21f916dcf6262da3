"""``gilscope stm follow``: reports every few seconds what has come to logs that grow."""

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gilscope.commands.colours import add_color_option, wants_colour
from gilscope.commands.numbers import seconds_between
from gilscope.errors import NotAnStmLog
from gilscope.model.stm_log import LogFile, LogGroup, StmReport
from gilscope.reports.stm_log import interval_json, interval_text
from gilscope.reports.stm_log import text as stm_log_text
from gilscope.stm_log.follow.follower import Follower
from gilscope.stm_log.follow.patterns import paths_of
from gilscope.stm_log.interval import interval
from gilscope.stm_log.merge import groups_of, merge
from gilscope.stm_log.source_lines import look_up
from gilscope.stm_log.sums import FollowedLog
from gilscope.text.printable import printable
from gilscope.text.units import counted

__all__ = ["add_follow", "report_of_files"]

_DONE = 0
_DEFAULT_EVERY_S = 5.0
_LEAST_EVERY_S, _MOST_EVERY_S = 0.1, 1e9
_HURRY_S = 0.5
"""For what has not been read when a signal comes."""


def add_follow(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the subcommand."""
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="logs or patterns of their names; those of forks, and those that appear later, belong "
        "to them",
    )
    parser.add_argument(
        "--every",
        type=seconds_between(_LEAST_EVERY_S, _MOST_EVERY_S),
        default=_DEFAULT_EVERY_S,
        metavar="TIME",
        help=f"time between two summaries, at least {_LEAST_EVERY_S} s "
        f"(default: {_DEFAULT_EVERY_S:g}s)",
    )
    parser.add_argument(
        "--count", type=_number, metavar="N", help="end after N summaries (default: at Ctrl-C)"
    )
    parser.add_argument(
        "--places",
        type=_number,
        default=interval_text.MOST_PLACES,
        metavar="K",
        help="show at most this many places of each log in a summary "
        f"(default: {interval_text.MOST_PLACES})",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="form of what is written; json is an object a line",
    )
    add_color_option(parser)
    parser.set_defaults(run_subcommand=_follow)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 upwards")
    return int(text)


class _Stop:
    """Whether it is to end."""

    def __init__(self) -> None:
        self.is_set = False


def _follow(arguments: argparse.Namespace) -> int:
    if hasattr(sys.stdout, "reconfigure"):
        # Names may be more than the terminal's encoding knows.
        sys.stdout.reconfigure(errors="replace")
    follower = Follower(arguments.logs, _warn, keeps_ended=True)
    try:
        with _until_signal(follower) as stop:
            _announce(arguments.logs)
            _summarise(follower, arguments, stop)
            follower.catch_up()
        return _report(follower, arguments)
    finally:
        follower.close()


def _warn(words: str) -> None:
    print(f"warning: {printable(words)}", file=sys.stderr, flush=True)


def _announce(patterns: Sequence[str]) -> None:
    found = counted(len(paths_of(patterns)), "file")
    names = printable(" ".join(patterns))
    print(f"Following {names}: {found} so far. Ctrl-C to end.", file=sys.stderr, flush=True)


@contextmanager
def _until_signal(follower: Follower) -> Iterator[_Stop]:
    stop = _Stop()

    def end(*_: object) -> None:
        stop.is_set = True
        follower.hurry(_HURRY_S)

    # A signal that was ignored when gilscope started stays ignored, as for any background job.
    wanted = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, end) for number in wanted}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _summarise(follower: Follower, arguments: argparse.Namespace, stop: _Stop) -> None:
    before: tuple[FollowedLog, ...] = ()
    began_ns = time.monotonic_ns()
    # What is there already is the first interval's.
    told, due_s = 0, time.monotonic() + arguments.every
    while not stop.is_set and told != arguments.count:
        left_s = due_s - time.monotonic()
        if left_s > 0:
            follower.advance(left_s)
            continue
        now, now_ns = follower.logs(), time.monotonic_ns()
        seen = interval(before, now, now_ns - began_ns)
        before, began_ns = now, now_ns
        if arguments.format == "json":
            _write(interval_json.render(seen, time.time(), arguments.places))
        else:
            clock, colour = time.strftime("%H:%M:%S"), wants_colour(arguments, sys.stdout)
            _write(interval_text.render(seen, clock, arguments.places, colour=colour))
        told += 1
        # One that comes late, on a machine that was asleep, is not made up for.
        due_s = max(due_s + arguments.every, time.monotonic())


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _report(follower: Follower, arguments: argparse.Namespace) -> int:
    files = _told_apart(follower.finish())
    if not any(file.logs for file in files):
        raise NotAnStmLog(f"no STM log has appeared as {' '.join(arguments.logs)}")
    report = report_of_files(files)
    if arguments.format == "json":
        _write(interval_json.render_report(report))
    else:
        colour = wants_colour(arguments, sys.stdout)
        _write("\n" + stm_log_text.render(report, colour=colour))
    return _DONE


def _told_apart(files: Sequence[LogFile]) -> tuple[LogFile, ...]:
    """Return *files* with other names for the earlier runs of those that were begun anew."""
    left = Counter(file.name for file in files)
    told: list[LogFile] = []
    for file in files:
        left[file.name] -= 1
        if not left[file.name]:
            told.append(file)
            continue
        run = sum(each.name.startswith(f"{file.name} (run ") for each in told) + 1
        name = f"{file.name} (run {run})"
        logs = tuple(replace(log, name=name) for log in file.logs)
        told.append(replace(file, name=name, logs=logs))
    return tuple(told)


def report_of_files(
    files: Sequence[LogFile],
    merges: str = "forks",
    sources: Sequence[Path] = (),
    most: int | None = None,
) -> StmReport:
    """Return the report on *files*, put together as *merges* says, with lines from *sources*."""
    groups = [LogGroup(merge(logs), tuple(logs)) for logs in groups_of(files, merges)]
    markers = (
        marker
        for group in groups
        for conflict in group.summary.conflicts
        for marker in conflict.markers
    )
    return StmReport(
        files=tuple(files),
        groups=tuple(groups),
        sources=look_up(markers, sources),
        most_entries=most,
    )
