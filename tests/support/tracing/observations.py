"""Short ways to what a test wants to know of an observation."""

from accuracy.truth import Workload, exact_counts
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation, ThreadTotals
from support.tracing.trace import looked_after, missed_events, observation_of

__all__ = ["assert_counts_exactly", "thread_of", "waits_of"]


def thread_of(observation: GilObservation, tid: int) -> ThreadTotals:
    """Return the totals of one thread."""
    (thread,) = [thread for thread in observation.totals.threads if thread.tid == tid]
    return thread


def assert_counts_exactly(tracer: GilAccount, workload: Workload) -> None:
    """Run exact_count.py, which is traced already, and assert that its waits are counted."""
    with looked_after(tracer):
        truth = exact_counts(workload.run())
    observation = observation_of(tracer, workload.pid)

    assert "" == observation.invalid
    assert {} == missed_events(observation)
    assert 23 == thread_of(observation, truth.waiter.tid).waits


def waits_of(observation: GilObservation) -> int:
    """Return the number of finished waits of all threads."""
    return sum(thread.waits for thread in observation.totals.threads)
