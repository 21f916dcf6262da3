"""``gilscope serve``: traces processes for as long as it runs and exposes the figures over HTTP."""

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

from gilscope.allocation import share_one_arena
from gilscope.blame_book import DEFAULT_PAIRS
from gilscope.collectors.agent import Logs
from gilscope.commands.options import (
    add_method_option,
    add_mode_option,
    add_stacks_option,
    chosen_method,
)
from gilscope.commands.record_stm import found_transactions
from gilscope.commands.serve_logs import followed, serve_logs
from gilscope.commands.targets import (
    add_target_options,
    add_transactions_option,
    chosen_targets,
    has_targets,
)
from gilscope.descriptors import allow_many
from gilscope.discovery import Discovery
from gilscope.doctor.refusals import require_processes
from gilscope.errors import InvalidWebConfig, NotPython, UnsupportedPython
from gilscope.gil.full_mode import ObservationPlan
from gilscope.gil.governor import Budget
from gilscope.gil.probe import GilProbe
from gilscope.gil.request import begin_loading
from gilscope.gil.site_cache import SiteCache, default_folder
from gilscope.gil.tracer import Tracer
from gilscope.gil.trap_costs import measure_trap_costs
from gilscope.log_lines import LogLines
from gilscope.model import Mode
from gilscope.serve import Address, Pulse, Server, parse_address
from gilscope.stm_live.plan import StmPlan
from gilscope.stm_live.tracer import StmTracer
from gilscope.web.guard import OPEN, Guard

__all__ = ["EXAMPLES", "SUMMARY", "prepare_parser", "run"]

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

_TICK_S = 0.4
_HELD_ERROR = 0.018
"""A bit less than two points, which the rate of a minute is to be right to."""
_PERCENT = 100
_PATIENCE_S = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Logs:
    """STM logs that are followed beside processes."""

    of_now: Logs
    pulse: Pulse
    """Of the thread that reads them."""


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
    add_target_options(parser, has_default=False)
    add_transactions_option(parser)
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
        type=_share,
        default="1%",
        metavar="PERCENT",
        help="what auto mode, and tracing transactions in any mode but full, may cost a process, "
        "of its own CPU time (default: 1%%)",
    )
    parser.add_argument(
        "--pairs",
        type=_number,
        default=DEFAULT_PAIRS,
        metavar="N",
        help="how many pairs of waiter and holder have series of their own, in each process, and "
        "how many places in each log; the others share one; 0: no such series "
        f"(default: {DEFAULT_PAIRS})",
    )
    add_stacks_option(parser)
    add_method_option(parser)
    parser.set_defaults(complain=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM and return the exit code; raises GilscopeError."""
    if not has_targets(arguments) and not arguments.stm_log:
        arguments.complain("one of the arguments -p/--pid --match --all --stm-log is required")
    lines = logging.StreamHandler()
    lines.setFormatter(LogLines())
    logging.basicConfig(level=logging.INFO, handlers=[lines])
    allow_many()
    share_one_arena()
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    server = Server(arguments.listen, _guard(arguments.web_config_file))
    try:
        if not has_targets(arguments):
            serve_logs(arguments, server, stopped)
            return 0
        if not arguments.stm_log:
            require_processes(named=bool(arguments.pid))
        with GilProbe(begin_loading(discover=True)) as probe:
            if not arguments.stm_log:
                _serve(arguments, server, probe, stopped)
                return 0
            following = Pulse()
            with followed(arguments.stm_log, following.beat) as follower:
                _serve(arguments, server, probe, stopped, _Logs(follower.logs, following))
    finally:
        server.close()
    return 0


def _serve(
    arguments: argparse.Namespace,
    server: Server,
    probe: GilProbe,
    stopped: threading.Event,
    logs: _Logs | None = None,
) -> None:
    plan = ObservationPlan(
        Mode(arguments.mode),
        arguments.overhead_budget,
        measure_trap_costs(probe),
        held_error=_HELD_ERROR,
        reads_stacks=arguments.stacks,
    )
    tracer = Tracer(
        probe,
        SiteCache(default_folder()),
        method=chosen_method(arguments),
        keep_threads=False,
        plan=plan,
    )
    budget = None if plan.mode is Mode.FULL else Budget(plan.budget_share)
    transactions = StmTracer(keep_threads=False, plan=StmPlan(plan.costs, budget))
    pids = arguments.pid or ()
    for pid in pids:
        # A process that was named must be traceable; what is only looked for may be absent.
        try:
            tracer.attach(pid)
        except (NotPython, UnsupportedPython) as error:
            transactions.attach(found_transactions(pid, error))
    discovery = Discovery(tracer, chosen_targets(arguments), pids, probe.bcc_version)
    discovery.include(transactions, has_all=arguments.transactions)
    _attempt(discovery.look)
    pulse = Pulse()
    # Both may take their time, and windows of full mode must end on time whatever they do.
    serving = (discovery, pulse, arguments.pairs, logs and logs.of_now)
    http = threading.Thread(target=server.run, args=serving, daemon=True)
    search = threading.Thread(target=_search, args=(discovery, stopped), daemon=True)
    http.start()
    search.start()
    print(f"Serving {server.url}metrics. Ctrl-C to end.", file=sys.stderr, flush=True)
    try:
        while not stopped.is_set():
            tracer.wait(_TICK_S)
            if not _attempt(lambda: _tick(tracer, transactions, discovery)):
                stopped.wait(_TICK_S)  # what is due may stay due for ever
            elif search.is_alive() and (logs is None or logs.pulse.is_alive):
                pulse.beat()
    finally:
        stopped.set()
        discovery.wake()
        search.join(_PATIENCE_S)
        server.stop()
        http.join(_PATIENCE_S)
        tracer.close()
        transactions.close()


def _tick(tracer: Tracer, transactions: StmTracer, discovery: Discovery) -> None:
    transactions.tick()
    discovery.heed(tracer.tick())


def _search(discovery: Discovery, stopped: threading.Event) -> None:
    while not stopped.is_set():
        discovery.wait()
        if not _attempt(discovery.look):
            stopped.wait(_TICK_S)  # likewise


def _guard(path: str | None) -> Guard:
    if path is None:
        return OPEN
    # The parser and bcrypt take 1 MB, which who serves without is not to pay for.
    try:
        from gilscope.web.access import Access  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise InvalidWebConfig(
            f"--web.config.file needs the Python package {error.name}, which is not installed",
            remedy="Install gilscope with it: pip install 'gilscope[web]'",
        ) from error
    return Access(path)


def _attempt(work: Callable[[], None]) -> bool:
    try:
        work()
    except Exception:  # noqa: BLE001 - see below
        # One process must not end the service for the others; the log tells what to report.
        _log.exception("could not look after the traced processes this time")
        return False
    return True


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _share(text: str) -> float:
    # A bare number is a share, as in 0.01.
    number = text.removesuffix("%")
    try:
        share = float(number) / (_PERCENT if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a budget such as 1% or 0.01")
    return share


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 upwards")
    return int(text)
