"""Exports what is in the STM logs that are followed."""

from collections.abc import Iterator, Sequence

from gilscope.exporter.samples import Series, log_label
from gilscope.metrics import table as metrics
from gilscope.series.conflicts import ConflictSeries, kind_label
from gilscope.stm_log.sums import FollowedLog, LogSums

__all__ = ["ERRORS", "stm_families"]

ERRORS = ("unreadable", "not_a_log", "gap", "unknown_event", "cut_record", "crowded")
"""Values of the label ``reason``, each of which every log has from the start."""

_FAMILIES = tuple(family for family in metrics.FAMILIES if "log" in family.labels)
_NO_PROCESS = ("",) * len(metrics.PROCESS_LABELS)

_Families = dict[metrics.Family, Series]


def stm_families(logs: Sequence[FollowedLog], book: ConflictSeries, at_ns: int) -> Iterator[Series]:
    """Yield the families about *logs* at *at_ns*; *book* remembers which places have series."""
    families = {family: Series(family) for family in _FAMILIES}
    sites = book.series(logs, at_ns)
    for log in logs:
        name = log_label(log.name)
        labels = (name,)
        _add_sums(families, name, log.sums)
        families[metrics.STM_LOG_BYTES].add(labels, log.read_bytes)
        families[metrics.STM_LOG_LAG].add(labels, log.lag_bytes)
        for reason in ERRORS:
            count = log.sums.errors.get(reason, 0)
            families[metrics.STM_LOG_ERRORS].add((name, reason), count)
        for each in sites.get(log.name, ()):
            of_site = (name, each.kind, each.site, each.other_site)
            families[metrics.STM_CONFLICTS].add(of_site, each.loss.count)
            families[metrics.STM_SITE_ABORT_COST].add_ns(of_site, each.loss.lost_ns)
            families[metrics.STM_SITE_PAUSE].add_ns(of_site, each.loss.paused_ns)
    yield from families.values()


def _add_sums(families: _Families, name: str, sums: LogSums) -> None:
    labels = (*_NO_PROCESS, name)
    families[metrics.STM_TRANSACTIONS].add((*labels, "commit"), sums.commits)
    families[metrics.STM_TRANSACTIONS].add((*labels, "abort"), sums.aborts)
    families[metrics.STM_TRANSACTION].add_histogram(labels, sums.committed_runs)
    families[metrics.STM_ABORT_COST].add_histogram(labels, sums.aborted_runs)
    families[metrics.STM_GC].add_ns((*labels, "minor"), sums.minor_gc_ns)
    families[metrics.STM_GC].add_ns((*labels, "major"), sums.major_gc_ns)
    for kind, ns in sums.waits_ns.items():
        families[metrics.STM_WAIT].add_ns((*labels, kind_label(kind)), ns)
