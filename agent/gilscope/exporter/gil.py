"""Exports what has been counted of every traced process.

What a mode can see is exported as zero before anything has happened: a rate then has its first
point, and the first long wait, which may be the only one, is an increase. What a mode cannot see is
left out, as is what says nothing: waits of unknown cause where causes are known.
"""

from collections.abc import Collection, Iterable, Mapping

from gilscope.exporter.requests import add_routes
from gilscope.exporter.samples import Exemplar, Labels, Rows
from gilscope.metrics import table as metrics
from gilscope.model.gil import (
    ENDED_INTERPRETER,
    GilObservation,
    GilTotals,
    Process,
    Tally,
    ThreadTotals,
    TracingCost,
)
from gilscope.model.histogram import EMPTY, Histogram
from gilscope.model.kinds import Cause
from gilscope.model.traces import TraceHolds, Traces
from gilscope.series.by_name.blame_series import BlameSeries
from gilscope.series.roles import RoleFigures
from gilscope.text.printable import label

__all__ = ["add_blame", "add_gil", "add_roles"]


_OTHER = "other"
_MOST_INTERPRETERS = 32
"""Interpreters below this number get labels of their own."""

_FULL, _WAITS, _ALL = "full", "waits", "all"
"""Values of the label ``window``."""

_Families = Mapping[metrics.Family, Rows]


def add_gil(families: _Families, labels: Labels, observation: GilObservation) -> None:
    """Add to *families* what is known of one process, whose series have *labels*."""
    families[metrics.PROBE_VALID].add(
        (*labels, observation.process.method), 0 if observation.invalid else 1
    )
    if not observation.invalid:
        _add_process(families, labels, observation)
        add_routes(families, labels, observation.totals.traces)


def add_roles(families: _Families, labels: Labels, roles: Iterable[RoleFigures]) -> None:
    """Add to *families* what is known of thread *roles*."""
    for each in roles:
        of_role = (*labels, each.role)
        families[metrics.GIL_THREAD_WAIT].add_ns(of_role, each.waits.ns)
        families[metrics.GIL_THREAD_WAITS].add(of_role, each.waits.count)
        if each.holds is not None:
            families[metrics.GIL_THREAD_HOLD].add_ns(of_role, each.holds.ns)
            families[metrics.GIL_THREAD_HOLDS].add(of_role, each.holds.count)


def add_blame(families: _Families, labels: Labels, blame: BlameSeries) -> None:
    """Add to *families* who kept whom waiting, and who held the GIL."""
    blocked, times = families[metrics.GIL_BLOCKED], families[metrics.GIL_BLOCKED_TIMES]
    for names, ns, count in blame.pairs:
        of_pair = (*labels, *names)
        blocked.add_ns(of_pair, ns)
        times.add(of_pair, count)
    slow, drops = families[metrics.GIL_SLOW_DROP], families[metrics.GIL_SLOW_DROPS]
    for names, ns, count in blame.slow_holders:
        of_holder = (*labels, *names)
        slow.add_ns(of_holder, ns)
        drops.add(of_holder, count)
    for names, ns, _ in blame.holders:
        families[metrics.GIL_HOLDER].add_ns((*labels, *names), ns)
    for names, ns, _ in blame.held_by:
        families[metrics.GIL_HELD_BY].add_ns((*labels, *names), ns)


def _add_process(families: _Families, labels: Labels, observation: GilObservation) -> None:
    process, totals = observation.process, observation.totals
    families[metrics.TARGET_INFO].add(
        (*labels, process.runtime, process.python, label(process.service or "")), 1
    )
    _add_threads(families, labels, totals.threads)
    if process.wakes_in_vain:
        failed = sum((thread.failed_wakeups for thread in totals.threads), Tally())
        families[metrics.GIL_FAILED_WAKEUPS].add(labels, failed.count)
        families[metrics.GIL_FAILED_WAKEUP_WAIT].add_ns(labels, failed.ns)
    for interpreter, gils in _by_label(totals.gils).items():
        of_gil = (*labels, interpreter)
        _add_waits(families, of_gil, gils, process, totals.traces)
        _add_holds(families, of_gil, gils, totals.traces)
    holding = [gil.holds.holding_ns for gil in totals.gils if gil.holds is not None]
    if holding:
        families[metrics.GIL_LONGEST_HOLD].add_ns(labels, max(holding))
    observed = families[metrics.GIL_OBSERVED]
    if totals.observed_ns is not None:
        observed.add_ns((*labels, _FULL), totals.observed_ns)
    traced_ns = max(0, totals.at_ns - observation.since_ns)
    if totals.cost is not None:
        observed.add_ns((*labels, _WAITS), max(0, traced_ns - totals.cost.waits_unseen_ns))
    observed.add_ns((*labels, _ALL), traced_ns)
    if totals.throttled_ns is not None:
        families[metrics.TARGET_THROTTLED].add_ns(labels, totals.throttled_ns)
    if totals.cost is not None:
        _add_cost(families, labels, totals.cost)
    for reason, count in totals.lost_events.items():
        families[metrics.LOST_EVENTS].add((*labels, reason), count)


def _add_threads(families: _Families, labels: Labels, threads: Iterable[ThreadTotals]) -> None:
    waiting = [thread.waiting_ns for thread in threads if thread.waiting_ns]
    families[metrics.GIL_WAITING_THREADS].add(labels, len(waiting))
    families[metrics.GIL_LONGEST_WAIT].add_ns(labels, max(waiting, default=0))


def _add_waits(
    families: _Families,
    of_gil: Labels,
    gils: list[GilTotals],
    process: Process,
    traces: Traces | None,
) -> None:
    conds = {gil.gil.cond for gil in gils}
    recent = [each for each in (() if traces is None else traces.recent) if each.cond in conds]
    for cause in Cause:
        waits = _total([gil.waits[cause] for gil in gils])
        if (cause is Cause.UNKNOWN) != process.knows_causes or waits.count:
            exemplars = [
                Exemplar(each.longest_ns, each.ended_unix_ns, each.trace_id, each.span_id)
                for each in recent
                if each.cause is cause
            ]
            families[metrics.GIL_WAIT].add_histogram((*of_gil, cause.value), waits, exemplars)
    if process.asks_holder:
        families[metrics.GIL_DROP_LATENCY].add_histogram(
            of_gil,
            _total([gil.drop_latency for gil in gils]),
            _exemplars(conds, None if traces is None else traces.slow_drops),
        )
        families[metrics.GIL_DROP_REQUESTS].add(of_gil, sum(gil.drop_requests for gil in gils))
    if process.knows_causes:
        families[metrics.GIL_CONVOY_WAITS].add(of_gil, sum(gil.convoy_waits for gil in gils))
    if process.knows_causes and not process.wakes_in_vain:
        families[metrics.GIL_FORCED_SWITCHES].add(of_gil, sum(gil.forced_switches for gil in gils))


def _add_holds(
    families: _Families, of_gil: Labels, gils: list[GilTotals], traces: Traces | None
) -> None:
    held = families[metrics.GIL_HELD]
    conds = {gil.gil.cond for gil in gils}
    holds = [gil.holds for gil in gils if gil.holds is not None]
    if holds:
        families[metrics.GIL_HOLD].add_histogram(
            of_gil,
            _total([one.finished for one in holds]),
            _exemplars(conds, None if traces is None else traces.long_holds),
        )
        families[metrics.GIL_SWITCH_LATENCY].add_histogram(
            of_gil, _total([one.switch_latency for one in holds])
        )
        held.add_ns((*of_gil, _FULL), sum(one.held_ns for one in holds))
    held_ns = [gil.held_ns for gil in gils if gil.held_ns is not None]
    # The sum of those that are known would look like that of all.
    if len(held_ns) == len(gils):
        held.add_ns((*of_gil, _ALL), sum(held_ns))


def _exemplars(conds: Collection[int], holds: TraceHolds | None) -> list[Exemplar]:
    return [
        Exemplar(each.longest_ns, each.ended_unix_ns, each.trace_id, each.span_id)
        for each in (() if holds is None else holds.recent)
        if each.cond in conds
    ]


def _add_cost(families: _Families, labels: Labels, cost: TracingCost) -> None:
    families[metrics.TARGET_OVERHEAD_RATIO].add(labels, cost.recent_ratio)
    families[metrics.TARGET_OVERHEAD].add_ns(labels, cost.overhead_ns)
    families[metrics.TARGET_TRAPS].add(labels, cost.traps)
    if cost.wait_error is not None:
        families[metrics.GIL_WAIT_ERROR].add(labels, cost.wait_error)
    if cost.stack_share is not None:
        families[metrics.GIL_STACK_SAMPLING_RATIO].add(labels, cost.stack_share)


def _total(histograms: list[Histogram]) -> Histogram:
    # Of one there is nothing to add up, and nearly every process has one lock.
    return histograms[0] if len(histograms) == 1 else sum(histograms, start=EMPTY)


def _by_label(gils: Iterable[GilTotals]) -> dict[str, list[GilTotals]]:
    # Interpreters are numbered in the order of their birth, so a program that makes new ones for
    # ever has a bounded number of series, and nothing moves from one series to another.
    labelled: dict[str, list[GilTotals]] = {}
    for gil in gils:
        number = gil.gil.interpreter_id
        is_own = number != ENDED_INTERPRETER and number < _MOST_INTERPRETERS
        labelled.setdefault(str(number) if is_own else _OTHER, []).append(gil)
    return labelled
