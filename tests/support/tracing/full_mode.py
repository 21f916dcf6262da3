"""Full mode in a test, and short ways to what it has seen."""

from collections.abc import Iterator
from contextlib import contextmanager

from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation, GilTotals, HoldTotals, Tally, ThreadTotals
from gilscope.model.kinds import Mode
from gilscope.process.attachment import Retention
from support.tracing.sites import shared_sites
from support.tracing.trace import missed_events

__all__ = [
    "assert_adds_up",
    "assert_sound",
    "held_by",
    "holds_of",
    "observed_ns",
    "tracing",
]


@contextmanager
def tracing(probe: GilProbe, plan: ObservationPlan | None = None) -> Iterator[GilAccount]:
    """Trace by *plan*, by default in full mode."""
    tracer = GilAccount(probe, shared_sites(), plan=plan or ObservationPlan(Mode.FULL))
    try:
        yield tracer
    finally:
        tracer.close()
        tracer.drop_ended(Retention(0), set())


def held_by(thread: ThreadTotals) -> Tally:
    """Return the holds of one thread."""
    assert thread.held is not None
    return thread.held


def holds_of(gil: GilTotals) -> HoldTotals:
    """Return the holds of one lock."""
    assert gil.holds is not None
    return gil.holds


def observed_ns(observation: GilObservation) -> int:
    """Return how much time windows have covered."""
    assert observation.totals.observed_ns is not None
    return observation.totals.observed_ns


def assert_sound(observation: GilObservation) -> None:
    """Assert that all checks of the probes have passed and that nothing was lost."""
    assert "" == observation.invalid
    assert {} == missed_events(observation)


def assert_adds_up(observation: GilObservation) -> None:
    """Assert that what threads and locks have been credited with is the same; both are at rest."""
    threads = [held_by(thread) for thread in observation.totals.threads]
    gils = [holds_of(gil) for gil in observation.totals.gils]

    assert sum(held.count for held in threads) == sum(gil.finished.count for gil in gils)
    assert sum(held.ns for held in threads) == sum(gil.held_ns for gil in gils)
    for gil in gils:
        # One thread at a time: together they cannot hold it for longer than was looked.
        assert gil.held_ns <= observed_ns(observation)
