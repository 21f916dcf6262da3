"""The options of ``serve``."""

import argparse

from gilscope.commands.numbers import share, whole_number
from gilscope.commands.options import (
    add_application_option,
    add_locks_option,
    add_method_option,
    add_mode_option,
    add_stacks_option,
    add_target_options,
    add_transactions_option,
    has_targets,
)
from gilscope.commands.serving.capture_options import add_capture_options, check_capture_options
from gilscope.commands.serving.otlp_options import add_otlp_options, check_otlp_options
from gilscope.model.kinds import Mode
from gilscope.series.pairs import PAIRS_OF_PROCESS, PAIRS_OF_SERVICE
from gilscope.web.address import Address, parse_address

__all__ = ["EXAMPLES", "SUMMARY", "check_options", "prepare_parser"]

SUMMARY = "trace Python processes all the time and expose what they wait for to Prometheus"

EXAMPLES = """\
examples:
  gilscope serve -p 4711                     # this process and its children
  gilscope serve --match 'gunicorn|celery'   # present and future ones, by command line
  gilscope serve --all                       # every Python on this host
  gilscope serve --stm-log '/var/log/*.stm'  # logs of PyPy-STM; as any user, and without BCC
  gilscope serve --all --listen :9845 --web.config.file web.yml  # with TLS and passwords
  curl http://127.0.0.1:9845/metrics
"""

_MOST_PAIRS = 1_000_000
_LEVELS = ("debug", "info", "warning", "error")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--listen",
        type=_address,
        default="127.0.0.1:9845",
        metavar="HOST:PORT",
        help="address to serve on (default: 127.0.0.1:9845); port 0 lets the kernel choose",
    )
    parser.add_argument(
        "--web.config.file",
        dest="web_config_file",
        metavar="FILE",
        help="encrypt connections and ask for certificates or passwords as FILE says, which is in "
        "the format of Prometheus' exporters",
    )
    parser.add_argument(
        "--no-page",
        dest="page",
        action="store_false",
        help="serve /metrics and /healthz alone: no page, no reports, and nothing kept for them",
    )
    add_target_options(parser, has_default=False)
    add_transactions_option(parser)
    add_locks_option(parser)
    parser.add_argument(
        "--stm-log",
        action="append",
        default=[],
        metavar="GLOB",
        help="follow these logs of PyPy-STM, future ones and those of forks too; may be given "
        "several times, with processes or alone",
    )
    add_mode_option(parser, Mode.AUTO, Mode.CONTENTION, Mode.FULL)
    parser.add_argument(
        "--overhead-budget",
        type=share,
        default="1%",
        metavar="PERCENT",
        help="what auto mode, and tracing transactions or locks in any mode but full, may cost a "
        "process, of its own CPU time (default: 1%%)",
    )
    parser.add_argument(
        "--pairs",
        type=whole_number(_MOST_PAIRS),
        metavar="N",
        help="how many pairs of waiter and holder have series of their own in each service, roles "
        "and other places in proportion, and how many places in each log; the others share one; 0: "
        f"no such series (default: {PAIRS_OF_SERVICE}, in each log {PAIRS_OF_PROCESS}; with "
        f"--per-process {PAIRS_OF_PROCESS})",
    )
    parser.add_argument(
        "--per-process",
        action="store_true",
        help="have series for each process, with its pid, and not for each service (all processes "
        "of one name in one container and pod)",
    )
    _add_keep_option(parser)
    add_stacks_option(parser)
    add_method_option(parser)
    add_application_option(parser)
    add_capture_options(parser)
    _add_regions_option(parser)
    add_otlp_options(parser)
    _add_log_options(parser)
    parser.set_defaults(complain=parser.error)


def check_options(arguments: argparse.Namespace) -> None:
    """End with the usage where one of them says nothing without another, or without processes."""
    if not has_targets(arguments) and not arguments.stm_log:
        arguments.complain("one of the arguments -p/--pid --match --all --stm-log is required")
    check_capture_options(arguments, has_targets=has_targets(arguments))
    check_otlp_options(arguments)
    _check_keep_option(arguments)


def _add_keep_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep-counters",
        metavar="FILE",
        help="leave what was counted of services in FILE at the end, and begin with what the last "
        "agent has left there: no counter falls when gilscope is restarted",
    )


def _check_keep_option(arguments: argparse.Namespace) -> None:
    if arguments.keep_counters is None:
        return
    if not has_targets(arguments):
        arguments.complain("--keep-counters is for processes, and not for logs alone")
    if arguments.per_process:
        arguments.complain(
            "--keep-counters is for series of services: not allowed with --per-process"
        )


def _add_regions_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--regions",
        metavar="PATH",
        help="let traced processes read their own waits, with gilscope-client, which asks for them "
        "at a Unix socket that is made at PATH; each gets its own threads' and nobody else's",
    )


def _add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log.level",
        dest="log_level",
        choices=_LEVELS,
        default="info",
        help="write what is as important as this, or more, to stderr (default: info)",
    )
    parser.add_argument(
        "--log.format",
        dest="log_format",
        choices=("text", "json"),
        default="text",
        help="form of these lines; json is an object a line (default: text)",
    )


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
