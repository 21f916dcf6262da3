"""Exports what has been counted of the transactions of live processes."""

from collections.abc import Mapping

from gilscope.exporter.samples import Labels, Rows
from gilscope.metrics import table as metrics
from gilscope.model.transactions import StmObservation, StmTotals
from gilscope.series.conflicts import kind_label

__all__ = ["add_transactions"]

_NO_LOG = ""
_FULL, _ALL = "full", "all"
"""Values of the label ``window``."""

_Families = Mapping[metrics.Family, Rows]


def add_transactions(families: _Families, labels: Labels, observation: StmObservation) -> None:
    """Add to *families* what is known of the transactions of one process.

    Its series have *labels*; what a method does not see is left out.
    """
    process, totals = observation.process, observation.totals
    families[metrics.PROBE_VALID].add(
        (*labels, process.method.value), 0 if observation.invalid else 1
    )
    if observation.invalid:
        return
    _add_cost(families, labels, observation)
    observed = families[metrics.STM_OBSERVED]
    observed.add_ns((*labels, _FULL), observation.observed_ns)
    observed.add_ns((*labels, _ALL), max(0, totals.at_ns - observation.since_ns))
    for reason, count in totals.lost_events.items():
        families[metrics.LOST_EVENTS].add((*labels, reason), count)
    _add_outcomes(families, labels, totals)
    for kind, tally in (totals.waits or {}).items():
        families[metrics.STM_WAIT].add_ns((*labels, _NO_LOG, kind_label(kind)), tally.ns)
        families[metrics.STM_WAITS].add((*labels, kind_label(kind)), tally.count)
    for generation, tally in (totals.collections or {}).items():
        families[metrics.STM_GC].add_ns((*labels, _NO_LOG, generation), tally.ns)
    for reason, count in totals.inevitable.items():
        families[metrics.STM_INEVITABLE].add((*labels, reason), count)
    for reason, count in (totals.restarts or {}).items():
        families[metrics.STM_RESTARTS].add((*labels, reason), count)


def _add_cost(families: _Families, labels: Labels, observation: StmObservation) -> None:
    families[metrics.TARGET_TRAPS].add(labels, observation.totals.traps)
    cost = observation.cost
    if cost is not None:
        families[metrics.TARGET_OVERHEAD_RATIO].add(labels, cost.recent_ratio)
        families[metrics.TARGET_OVERHEAD].add_ns(labels, cost.overhead_ns)


def _add_outcomes(families: _Families, labels: Labels, totals: StmTotals) -> None:
    outcomes = {"commit": totals.commits, "abort": totals.aborts, "cancel": totals.cancels}
    for outcome, count in outcomes.items():
        if count is not None:
            families[metrics.STM_TRANSACTIONS].add((*labels, _NO_LOG, outcome), count)
    if totals.committed is not None:
        families[metrics.STM_TRANSACTION].add_histogram((*labels, _NO_LOG), totals.committed)
    if totals.aborted is not None:
        families[metrics.STM_ABORT_COST].add_histogram((*labels, _NO_LOG), totals.aborted)
