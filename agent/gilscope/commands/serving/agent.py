"""The agent: what ``gilscope serve`` does once it knows what it is to do."""

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from gilscope.bpf.loader import Loading
from gilscope.commands.options import chosen_application, chosen_targets, shares_probes
from gilscope.commands.serving.capturing import Capturing
from gilscope.commands.serving.kept_file import KeptFile, kept_counters
from gilscope.commands.serving.logs import followed, serve_logs
from gilscope.commands.serving.otlp import pushed
from gilscope.commands.serving.regions import given_regions
from gilscope.commands.serving.service import Service
from gilscope.commands.session import attach_tree, new_tracer, tracing_session
from gilscope.discovery.agent_stats import AgentReader
from gilscope.discovery.scanner import Following, Scanner
from gilscope.discovery.selection import Choice, Kinship
from gilscope.discovery.traced_log import TracedLog
from gilscope.doctor.explain import require_processes
from gilscope.errors import InvalidWebConfig
from gilscope.exporter.source import Logs, Source
from gilscope.gil.calibration.measure import measure_trap_costs
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.locks.program import LockLimits
from gilscope.model.gil import GilObservation
from gilscope.model.kinds import Mode
from gilscope.series.blocking import BlockingSeries
from gilscope.series.past import LONGEST_S, Past
from gilscope.system import ending
from gilscope.system.garbage import Sweeps, spare_old_objects
from gilscope.system.named_thread import named_thread
from gilscope.tracing.tracer import Tracer
from gilscope.values import dataclass
from gilscope.web.guard import OPEN, Guard
from gilscope.web.health import Health, Pulse
from gilscope.web.moments import Moments
from gilscope.web.server import Server

__all__ = ["serve"]

_TICK_S = 0.4
_HELD_ERROR = 0.018
"""A bit less than two points, which the rate of a minute is to be right to."""
_HOLDERS_CPU_SHARE = 0.001
"""Half of what sampling the locks takes."""
_FIRST_WAIT_S = 0.05
_FIRST_SEARCH_S = 10.0
"""Timeout for the processes that are there at the start."""
_PATIENCE_S = 0.5
_LOCK_LIMITS = LockLimits(span_pages=64, spans_a_second=500)
"""For the worst moment of a report, as for the GIL."""
_CLOSING_S = 10.0
"""Timeout for removing the probes, after everything else has ended in time."""


@dataclass(frozen=True, slots=True)
class _Logs:
    """STM logs that are followed beside processes."""

    of_now: Logs
    pulse: Pulse
    """Of the thread that reads them."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What tracing works with."""

    server: Server
    probe: GilProbe
    service: Service
    capturing: Capturing
    told: ending.Told
    kept: KeptFile | None
    logs: _Logs | None = None


def serve(arguments: argparse.Namespace, service: Service, loading: Loading | None) -> None:
    """Serve until *service* is to end; raises GilscopeError.

    *loading* are the programs; None where only logs are followed.
    """
    server = Server(arguments.listen, _guard(arguments.web_config_file))
    try:
        if loading is None:
            with ending.told(service.stop):
                serve_logs(arguments, server, service)
        else:
            _serve_processes(arguments, server, service, loading)
    finally:
        server.close()


def _serve_processes(
    arguments: argparse.Namespace, server: Server, service: Service, loading: Loading
) -> None:
    with (
        kept_counters(arguments.keep_counters, service.began_ns) as kept,
        _answering(server),
    ):
        if not arguments.stm_log:
            require_processes(named=bool(arguments.pid))
        capturing = Capturing(arguments)
        probe = GilProbe(loading, long_wait_ns=capturing.limit_ns)
        # Until its end the probes are taken out in order, whatever signal comes.
        with ending.told(service.stop) as told, probe:
            service.has_loaded(probe.bcc_version, is_ahead=probe.is_ahead)
            parts = _Parts(server, probe, service, capturing, told, kept)
            if not arguments.stm_log:
                _serve(arguments, parts)
            else:
                following = Pulse("reads the STM logs")
                with followed(arguments.stm_log, following.beat) as follower:
                    _serve(arguments, replace(parts, logs=_Logs(follower.logs, following)))
            told.allow(_CLOSING_S)


@contextlib.contextmanager
def _answering(server: Server) -> Iterator[None]:
    """Answer requests inside of the block."""
    http = named_thread("http", server.answer)
    http.start()
    try:
        yield
    finally:
        server.stop()
        http.join(_PATIENCE_S)


def _serve(arguments: argparse.Namespace, parts: _Parts) -> None:
    service, capturing, logs = parts.service, parts.capturing, parts.logs
    # Before anything is attached: what is known of processes may become garbage.
    spare_old_objects()
    application = chosen_application(arguments)
    plan = ObservationPlan(
        Mode(arguments.mode),
        arguments.overhead_budget,
        measure_trap_costs(parts.probe),
        held_error=_HELD_ERROR,
        holders_cpu_share=_HOLDERS_CPU_SHARE,
        reads_stacks=arguments.stacks,
        moments_for_s=LONGEST_S,
        application=application,
        shares_probes=shares_probes(arguments),
        # Who wants every long wait captured, or reads what a request has waited, wants them all.
        sees_all_waits=bool(capturing.limit_ns or arguments.regions),
    )
    tracer = new_tracer(
        arguments,
        parts.probe,
        plan,
        keep_threads=False,
        has_locks=arguments.locks,
        has_moments=arguments.page,
        lock_limits=_LOCK_LIMITS,
        on_long_wait=capturing.on_long_wait,
    )
    past: Past[GilObservation] = Past()
    agent = AgentReader(tracer, time.monotonic_ns(), captures=capturing.counts)
    pids, traced = arguments.pid or (), TracedLog()
    for pid in pids:
        # A process that was named must be traceable; what is only searched for may be absent.
        for process in attach_tree(tracer, pid):
            traced.add(process)
    ticking, scanning = Pulse(), Pulse("looks for processes")
    wanted = _noted(chosen_targets(arguments), scanning.beat)
    scanner = Scanner(
        tracer,
        wanted,
        pids,
        has_all_transactions=arguments.transactions,
        following=Following(traced.add),
    )
    source = Source(agent.read, tracer.observe, scanner.refusals, parts.probe.bcc_version)
    health = Health(ticking, scanning)
    if logs is not None:
        health.watch(logs.pulse)

    sweeps = Sweeps()

    def ticked() -> None:
        ticking.beat()
        sweeps.sweep_if_due()
        if not health.complaint:
            service.alive()

    scanned = _at_first(traced.tell_rest, scanning.beat)
    with (
        tracing_session(tracer, scanner, _TICK_S, ticked=ticked, scanned=scanned) as has_scanned,
        capturing.running(tracer.gils, past),
        given_regions(
            arguments.regions,
            parts.probe,
            tracer.gils.attached,
            tells_holds=Mode(arguments.mode) is Mode.FULL,
        ),
    ):
        show_at_s = time.monotonic() + _FIRST_SEARCH_S
        while not (
            service.stopped.is_set() or has_scanned.is_set() or time.monotonic() > show_at_s
        ):
            has_scanned.wait(_FIRST_WAIT_S)
        if not service.stopped.is_set():
            book = BlockingSeries(
                arguments.pairs, application, by_service=not arguments.per_process
            )
            collector = parts.server.show(
                source,
                health,
                book,
                None if logs is None else logs.of_now,
                Mode(arguments.mode),
                has_pages=arguments.page,
                past=past if arguments.page or capturing.limit_ns else None,
                captures=capturing.recent,
                moments=_moments(tracer),
                kept=None if parts.kept is None else parts.kept.counters,
            )
            with pushed(
                arguments, service.began_ns, collector.collect, collector.observe, application
            ):
                service.ready(parts.server.url)
                service.stopped.wait()
            if parts.kept is not None:
                # What has been counted since the last scrape is told by the next agent. To take
                # the probes out may take longer than there is time.
                parts.told.allow(_CLOSING_S)
                tuple(collector.collect())
                parts.kept.leave()


def _moments(tracer: Tracer) -> Moments:
    if tracer.locks is None:
        return Moments(gil=tracer.gils.moment)
    return Moments(gil=tracer.gils.moment, locks=tracer.locks.moment)


def _at_first(tell: Callable[[], None], note: Callable[[], None]) -> Callable[[], None]:
    """Return *note*, which also calls *tell* the first time."""
    is_told = False

    def noted() -> None:
        nonlocal is_told
        note()
        if not is_told:
            is_told = True
            tell()

    return noted


def _noted(choice: Choice, note: Callable[[], None]) -> Choice:
    """Return *choice*, which also calls *note* for each process that it is asked about."""

    def is_wanted(pid: int, kinship: Kinship) -> bool:
        note()
        return choice(pid, kinship)

    return is_wanted


def _guard(path: str | None) -> Guard:
    if path is None:
        return OPEN
    # The parser and bcrypt take 1 MB, which who serves without is not to pay for.
    try:
        from gilscope.web.config.access import Access  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise InvalidWebConfig(
            f"--web.config.file needs the Python package {error.name}, which is not installed",
            remedy="Install gilscope with it: pip install 'gilscope[web]'",
        ) from error
    return Access(path)
