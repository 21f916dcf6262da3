"""Exports what has been counted of the locks that threads of live processes wait for."""

from collections.abc import Iterable, Mapping

from gilscope.exporter.samples import Labels, Rows
from gilscope.metrics import table as metrics
from gilscope.model.locks import LockKind, LockObservation, LockTotals, StopCause
from gilscope.series.by_name.top_series import Shown

__all__ = ["REASONS", "add_locks", "add_places"]

REASONS = ("read_fault", "table_full", "began_unseen", "thread_reused", "stack_unknown")
"""Values of the label ``reason``, each of which every process has from the start. `serve` asks for
no timeline, of which something could be lost."""

_FULL, _ALL = "full", "all"
"""Values of the label ``window``."""

_Families = Mapping[metrics.Family, Rows]


def add_locks(families: _Families, labels: Labels, observation: LockObservation) -> None:
    """Add to *families* what is known of the locks of one process, whose series have *labels*.

    Where they are not traced at all, as in a Python that is too old, nothing has gone wrong.
    """
    if observation.totals is None:
        return
    families[metrics.LOCK_PROBE_VALID].add(labels, 0 if observation.invalid else 1)
    if not observation.invalid:
        _add(families, labels, observation, observation.totals)


def add_places(families: _Families, labels: Labels, places: Iterable[Shown]) -> None:
    """Add to *families* what was lost at *places*."""
    for names, ns, count in places:
        families[metrics.LOCK_BLOCKED].add_ns((*labels, *names), ns)
        families[metrics.LOCK_BLOCKED_TIMES].add((*labels, *names), count)


def _add(
    families: _Families, labels: Labels, observation: LockObservation, totals: LockTotals
) -> None:
    observed = families[metrics.LOCK_OBSERVED]
    observed.add_ns((*labels, _FULL), observation.observed_ns)
    observed.add_ns((*labels, _ALL), max(0, totals.at_ns - observation.since_ns))
    waits = [wait for thread in totals.threads for wait in thread.waits]
    for kind in LockKind:
        if not kind.is_contention:
            continue
        of_kind = [wait for wait in waits if wait.kind is kind]
        wait_ns = sum(wait.wait_ns for wait in of_kind)
        families[metrics.LOCK_WAIT].add_ns((*labels, kind.value), wait_ns)
        number = sum(wait.waits for wait in of_kind)
        families[metrics.LOCK_WAITS].add((*labels, kind.value), number)
    families[metrics.LOCK_IDLE].add_ns(labels, totals.idle_ns)
    _add_stops(families, labels, totals)
    families[metrics.LOCK_TRAPS].add(labels, totals.traps)
    if observation.cost is not None:
        families[metrics.LOCK_OVERHEAD].add_ns(labels, observation.cost.overhead_ns)
        families[metrics.LOCK_OVERHEAD_RATIO].add(labels, observation.cost.recent_ratio)
    for reason in REASONS:
        count = totals.lost_events.get(reason, 0)
        families[metrics.LOCK_LOST_EVENTS].add((*labels, reason), count)


def _add_stops(families: _Families, labels: Labels, totals: LockTotals) -> None:
    for cause in StopCause:
        of_cause = [stops for stops in totals.stops if stops.cause is cause]
        names = (*labels, cause.value)
        families[metrics.WORLD_STOPS].add(names, sum(stops.stops for stops in of_cause))
        stopping_ns = sum(stops.stopping_ns for stops in of_cause)
        families[metrics.WORLD_STOPPING].add_ns(names, stopping_ns)
        standing_ns = sum(stops.standing_ns for stops in of_cause)
        families[metrics.WORLD_STOPPED].add_ns(names, standing_ns)
