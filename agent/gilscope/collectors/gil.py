"""Exports what has been counted of every traced process."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from prometheus_client.core import Metric

from gilscope import metrics
from gilscope.collectors.families import NS_PER_S, Series, process_labels
from gilscope.histogram import total
from gilscope.model import ENDED_INTERPRETER, Cause, GilTotals, Observation, ThreadTotals

__all__ = ["gil_families"]

_OTHER = "other"
_MOST_INTERPRETERS = 32
"""Interpreters below this number get labels of their own."""

_FAMILIES = tuple(
    family
    for family in metrics.FAMILIES
    if family.labels[: len(metrics.PROCESS_LABELS)] == metrics.PROCESS_LABELS
)


def gil_families(observations: Iterable[Observation]) -> Iterator[Metric]:
    """Yield the families about traced processes."""
    families = {family: Series(family) for family in _FAMILIES}
    for observation in observations:
        labels = process_labels(observation.process)
        families[metrics.PROBE_VALID].add(
            (*labels, observation.process.method), 0 if observation.invalid else 1
        )
        if not observation.invalid:
            _add_threads(families, labels, observation)
            _add_gils(families, labels, observation)
            if observation.process.knows_causes:
                _add_causes(families, labels, observation)
            for reason, count in observation.totals.lost_events.items():
                families[metrics.LOST_EVENTS].add((*labels, reason), count)
    for series in families.values():
        yield series.metric


def _add_threads(
    families: dict[metrics.Family, Series], labels: tuple[str, ...], observation: Observation
) -> None:
    by_role: dict[str, list[ThreadTotals]] = defaultdict(list)
    for thread in observation.totals.threads:
        # A thread that has no role yet is exported with its whole time as soon as it has one: a
        # counter must not move from one role to another.
        if thread.role is not None:
            by_role[thread.role].append(thread)
    for role, threads in sorted(by_role.items()):
        wait_ns = sum(thread.wait_ns for thread in threads)
        families[metrics.GIL_THREAD_WAIT].add((*labels, role), wait_ns / NS_PER_S)
        families[metrics.GIL_THREAD_WAITS].add(
            (*labels, role), sum(thread.waits for thread in threads)
        )
    waiting = [thread.waiting_ns for thread in observation.totals.threads if thread.waiting_ns]
    families[metrics.GIL_WAITING_THREADS].add(labels, len(waiting))
    families[metrics.GIL_LONGEST_WAIT].add(labels, max(waiting, default=0) / NS_PER_S)


def _add_gils(
    families: dict[metrics.Family, Series], labels: tuple[str, ...], observation: Observation
) -> None:
    for interpreter, gils in _by_label(observation.totals.gils).items():
        of_gil = (*labels, interpreter)
        for cause in Cause:
            waits = total(gil.waits[cause] for gil in gils)
            if waits.count or (cause is Cause.UNKNOWN) != observation.process.knows_causes:
                families[metrics.GIL_WAIT].add_histogram((*of_gil, cause.value), waits)
        families[metrics.GIL_DROP_LATENCY].add_histogram(
            of_gil, total(gil.drop_latency for gil in gils)
        )
        families[metrics.GIL_DROP_REQUESTS].add(of_gil, sum(gil.drop_requests for gil in gils))


def _add_causes(
    families: dict[metrics.Family, Series], labels: tuple[str, ...], observation: Observation
) -> None:
    for interpreter, gils in _by_label(observation.totals.gils).items():
        of_gil = (*labels, interpreter)
        families[metrics.GIL_CONVOY_WAITS].add(of_gil, sum(gil.convoy_waits for gil in gils))
        families[metrics.GIL_FORCED_SWITCHES].add(of_gil, sum(gil.forced_switches for gil in gils))


def _by_label(gils: Iterable[GilTotals]) -> dict[str, list[GilTotals]]:
    # Interpreters are numbered in the order of their birth, so a program that makes new ones for
    # ever has a bounded number of series, and nothing moves from one series to another.
    labelled: dict[str, list[GilTotals]] = {}
    for gil in gils:
        number = gil.gil.interpreter_id
        is_own = number != ENDED_INTERPRETER and number < _MOST_INTERPRETERS
        labelled.setdefault(str(number) if is_own else _OTHER, []).append(gil)
    return labelled
