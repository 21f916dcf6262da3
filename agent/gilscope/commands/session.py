"""What all commands that trace do: make a tracer, attach to what was named, keep things going."""

import argparse
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from gilscope.budget.governor import Budget
from gilscope.commands.options import chosen_method
from gilscope.discovery.scanner import Scanner
from gilscope.discovery.selection import descendants_of
from gilscope.errors import GilscopeError, NotPython, UnsupportedPython
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.locks.account import LockAccount
from gilscope.locks.probe import LockProbe
from gilscope.locks.program import LockLimits
from gilscope.locks.program import begin_loading as begin_lock_loading
from gilscope.model.kinds import Mode
from gilscope.model.observation import AnyProcess
from gilscope.process.view import view_of
from gilscope.process.watch import ProcessWatch
from gilscope.runtimes.site_cache import SiteCache, default_folder
from gilscope.system import ending
from gilscope.system.named_thread import named_thread
from gilscope.text.units import NS_PER_S
from gilscope.tracing.tracer import Tracer
from gilscope.transactions.account import TransactionAccount
from gilscope.transactions.target import CHECKED
from gilscope.windows.plan import WindowPlan

__all__ = [
    "attach_named",
    "attach_tree",
    "checked",
    "new_tracer",
    "observe_until_end",
    "scanning",
    "tracing_session",
]

_log = logging.getLogger(__name__)

_FIRST_TICK_S = 0.02
"""Between two ticks until all processes have been attached to that were there at the start."""
_FIRST_REST = 10
"""For so many times what the last one took, at least: of a thousand processes it takes what is
needed to attach to them."""
_RECORD_TICK_S = 0.05
_PATIENCE_S = 0.5
"""How long a thread may take to end."""


def new_tracer(  # noqa: PLR0913 - most have defaults
    arguments: argparse.Namespace,
    probe: GilProbe,
    plan: ObservationPlan,
    *,
    keep_threads: bool = True,
    has_locks: bool = False,
    has_timeline: bool = False,
    has_moments: bool = False,
    lock_limits: LockLimits | None = None,
    on_long_wait: Callable[[int, int], None] = lambda _pid, _tid: None,
) -> Tracer:
    """Return a tracer that observes as *plan* says, and tells *on_long_wait* of long waits.

    Live transactions have the same budget; in full mode, or where they may cost as much as the
    process itself, all of them are seen. With *has_locks* the locks of processes are traced beside,
    likewise, and with *has_timeline* their waits are told one by one, with *has_moments* the worst
    moment.
    """
    watch = ProcessWatch()
    gils = GilAccount(
        probe,
        SiteCache(default_folder()),
        method=chosen_method(arguments),
        keep_threads=keep_threads,
        plan=plan,
        watch=watch,
        on_long_wait=on_long_wait,
    )
    has_limit = plan.mode is not Mode.FULL and plan.budget_share < 1
    budget = Budget(plan.budget_share) if has_limit else None
    windows = WindowPlan(plan.costs, budget)
    locks = None
    if has_locks:
        locks = LockAccount(
            lambda: LockProbe(
                begin_lock_loading(lock_limits, timeline=has_timeline, moments=has_moments)
            ),
            keep_threads=keep_threads,
            plan=windows,
            watch=watch,
            moments_for_s=plan.moments_for_s,
        )
    transactions = TransactionAccount(keep_threads=keep_threads, plan=windows, watch=watch)
    return Tracer(gils, transactions, watch, locks)


def attach_named(tracer: Tracer, pid: int) -> AnyProcess:
    """Attach to *pid*, which the user has named; raises what `Tracer.attach` raises.

    The error says all that was searched for.
    """
    try:
        return tracer.attach(pid)
    except (NotPython, UnsupportedPython) as refusal:
        raise checked(refusal, pid) from refusal


def attach_tree(tracer: Tracer, pid: int, *, children: bool = True) -> Sequence[AnyProcess]:
    """Attach to *pid*, which the user has named, or else to those below it that are Pythons.

    A shell, or what has unpacked a program, is a name for what it has started. Raises what
    `attach_named` raises, where there is none or they are not wanted.
    """
    try:
        return [attach_named(tracer, pid)]
    except NotPython:
        found = []
        for child in descendants_of(pid) if children else ():
            # Others may be anything, and end at any time.
            with contextlib.suppress(GilscopeError, OSError):
                found.append(tracer.attach(child))
        if not found:
            raise
        return found


def checked(refusal: NotPython | UnsupportedPython, pid: int) -> NotPython | UnsupportedPython:
    """Return *refusal* of *pid* with what else was searched for, if it is a process at all."""
    try:
        view_of(pid)
    except GilscopeError:
        return refusal
    return type(refusal)(f"{refusal}, {CHECKED}", remedy=refusal.remedy)


def observe_until_end(
    tracer: Tracer,
    duration_s: float | None,
    stopped: ending.Told,
    *,
    is_over: Callable[[], bool],
    ticked: Callable[[Collection[int]], None],
) -> None:
    """Look after *tracer* for *duration_s*, or until *stopped*, or until *is_over* says so.

    *ticked* is called after each tick with the processes that have replaced their program.
    """
    deadline_ns = None
    if duration_s is not None:
        deadline_ns = time.monotonic_ns() + int(duration_s * NS_PER_S)
    while not stopped.is_set and not is_over():
        left_s = _RECORD_TICK_S
        if deadline_ns is not None:
            left_s = min(left_s, (deadline_ns - time.monotonic_ns()) / NS_PER_S)
            if left_s <= 0:
                break
        tracer.wait(left_s)
        ticked(tracer.tick())


@contextlib.contextmanager
def tracing_session(
    tracer: Tracer,
    scanner: Scanner,
    tick_s: float,
    *,
    ticked: Callable[[], None] = lambda: None,
    scanned: Callable[[], None] = lambda: None,
) -> Iterator[threading.Event]:
    """Look after *tracer* and have *scanner* scan, in two threads, until the block has ended.

    Two, because scanning may take its time, and windows of full mode must end on time meanwhile.
    *ticked* and *scanned* are called after each turn that succeeded. The event is set when all
    processes have been judged that were there at the start. The tracer is closed at the end.
    """
    stopped, has_scanned = threading.Event(), threading.Event()

    def look_after() -> None:
        took_s = 0.0
        while not stopped.is_set():
            first_s = min(max(_FIRST_TICK_S, _FIRST_REST * took_s), tick_s)
            tracer.wait(tick_s if has_scanned.is_set() else first_s)
            began_s = time.monotonic()
            if _succeeds(lambda: scanner.note_executed(tracer.tick())):
                ticked()
            else:
                stopped.wait(tick_s)  # what is due may stay due for ever
            took_s = time.monotonic() - began_s

    ticking = named_thread("tick", look_after)
    ticking.start()
    try:
        with scanning(scanner, tick_s, scanned=scanned, has_scanned=has_scanned):
            yield has_scanned
    finally:
        stopped.set()
        ticking.join(_PATIENCE_S)
        tracer.close()


@contextlib.contextmanager
def scanning(
    scanner: Scanner,
    pause_s: float,
    *,
    scanned: Callable[[], None] = lambda: None,
    has_scanned: threading.Event | None = None,
) -> Iterator[None]:
    """Have *scanner* scan in a thread of its own until the block has ended.

    *scanned* is called after each turn that succeeded; after one that failed there is a pause.
    *has_scanned* is set after the first.
    """
    stopped = threading.Event()

    def scan() -> None:
        while not stopped.is_set():
            if _succeeds(scanner.scan):
                scanned()
            else:
                stopped.wait(pause_s)  # what is due may stay due for ever
            if has_scanned is not None:
                has_scanned.set()
            scanner.wait()

    thread = named_thread("scan", scan)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        scanner.wake()
        thread.join(_PATIENCE_S)


def _succeeds(work: Callable[[], None]) -> bool:
    try:
        work()
    except Exception:  # noqa: BLE001 - see below
        # One process must not end tracing for the others; the log tells what to report.
        _log.exception("could not look after the traced processes this time")
        return False
    return True
