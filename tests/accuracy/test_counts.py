"""Programs with an exactly known number of waits, also the number zero."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from accuracy.holds_truth import Wait, Witness, assert_same_lengths
from accuracy.truth import ExactCounts, exact_counts, started, thread_truths
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from gilscope.model.histogram import total
from gilscope.model.kinds import Cause, Kind
from gilscope.process.attachment import Retention
from gilscope.runtimes.site_cache import SiteCache
from support.interpreters.builds import build
from support.interpreters.known import INTERPRETERS, TIMED_MINORS, WITH_GIL_ON, Interpreter
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = pytest.mark.live

_ENDS_NS = 50_000
"""What may come between an event and the note of it."""

_TRIES = 10
"""A machine that stalls for 2 ms in the wrong place spoils the program's own answer."""


@pytest.mark.parametrize("interpreter", [*INTERPRETERS, *WITH_GIL_ON])
def test_twenty_three_waits_are_twenty_three(
    interpreter: Interpreter, tracer: GilAccount, tmp_path: Path
) -> None:
    """
    A thread that waits 23 times, 7 of them in a convoy, is reported exactly so.
    """
    for _ in range(_TRIES):
        truth, observation, waits = _exact_run(interpreter, tracer, tmp_path)
        if truth.is_exact:
            break
    assert truth.is_exact, "the machine stalled in every run; this proves nothing"
    (gil,) = observation.totals.gils
    (waiter,) = [thread for thread in observation.totals.threads if thread.tid == truth.waiter.tid]

    counted = {kind: lost.count for kind, lost in waiter.lost.items() if lost.count}

    assert 23 == truth.waits == waiter.waits
    assert {Kind.BLOCKING_CALL: 16, Kind.CONVOY: 7} == counted
    assert 7 == truth.convoy_waits == waiter.convoy_waits == gil.convoy_waits
    assert 0 == waiter.forced_switches
    assert 7 == truth.drop_requests == gil.drop_latency.count
    assert waiter.drop_requests == gil.drop_requests
    assert _timeouts(waits, truth.waiter.tid) == waiter.drop_requests
    if truth.timeouts_are_exact:
        # That many fit into the waits; one that is late on a busy CPU leaves room for one less.
        assert waiter.drop_requests <= truth.timeouts
    assert {} == missed_events(observation)
    # The main thread may have had to wait, too, when the others had ended.
    waits_ns = [wait.ns for wait in waits]
    assert_same_lengths(waits_ns, gil.waits[Cause.BLOCKING_CALL], slack_ns=_ENDS_NS)


@pytest.mark.beside_others
@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_foreign_condition_variables_are_not_the_gil(
    interpreter: Interpreter, tracer: GilAccount, site_cache: SiteCache
) -> None:
    """
    Seconds of waiting on other condition variables, GIL look-alikes among them, count as nothing.
    """
    for method in ("sites", "libc"):
        one = GilAccount(tracer.probe, site_cache, method=method)
        with started(command_of(interpreter), "foreign_condvars.py") as workload:
            one.attach(workload.pid)
            with looked_after(one):
                workload.run()
            observation = observation_of(one, workload.pid)
            workload.finish()
        one.close()
        one.drop(workload.pid)

        assert () == observation.totals.threads, method
        assert 0 == total(observation.totals.gils[0].waits.values()).count
        assert {} == missed_events(observation)
        assert "" == observation.invalid


def test_a_process_without_sites_changes_no_others_kinds(
    tracer: GilAccount, site_cache: SiteCache, tmp_path: Path
) -> None:
    """
    One has a shadow stack, or its file took too long; the next of the build is told as ever.
    """
    interpreter = build("pyenv-3.13-stripped")
    without = GilAccount(tracer.probe, site_cache, method="libc")
    for account, kinds in ((without, {Kind.UNKNOWN}), (tracer, {Kind.BLOCKING_CALL, Kind.CONVOY})):
        truth, observation, _ = _exact_run(interpreter, account, tmp_path)
        (waiter,) = [each for each in observation.totals.threads if each.tid == truth.waiter.tid]
        assert kinds == {kind for kind, lost in waiter.lost.items() if lost.count}
    without.close()
    without.drop_ended(Retention(0), set())


def test_five_hundred_threads_are_all_counted(tracer: GilAccount, tmp_path: Path) -> None:
    """
    400 of 500 threads wait three times each; none is lost or mistaken.
    """
    witness = Witness(tmp_path)
    with started(witness.command(["/usr/bin/python3"]), "many_threads.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            answer = workload.run()
        observation = observation_of(tracer, workload.pid)
        waits = witness.holds(workload.pid).since(observation.since_ns).waits
        workload.finish()
    waiters = {thread.tid for thread in thread_truths(answer) if thread.name == "waiter"}
    witnessed = Counter(wait.tid for wait in waits if wait.tid in waiters and not wait.is_yield)
    counted = {
        thread.tid: thread.lost[Kind.BLOCKING_CALL].count + thread.convoy_waits
        for thread in observation.totals.threads
        if thread.tid in waiters
    }

    assert dict(witnessed) == counted == dict.fromkeys(waiters, 3)
    assert 400 == len(counted)
    assert {} == missed_events(observation)


def _exact_run(
    interpreter: Interpreter, tracer: GilAccount, folder: Path
) -> tuple[ExactCounts, GilObservation, list[Wait]]:
    """Return what the program knows, what has been seen, and what a witness knows of its waits."""
    witness = Witness(folder)
    with started(witness.command(command_of(interpreter)), "exact_count.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            truth = exact_counts(workload.run())
            workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        waits = witness.holds(workload.pid).since(observation.since_ns).waits
        workload.finish()
    return truth, observation, [wait for wait in waits if not wait.is_yield]


def _timeouts(waits: Sequence[Wait], tid: int) -> int:
    """Return how often a wait of *tid* went on; nobody else takes the lock meanwhile."""
    return sum(wait.calls - 1 for wait in waits if wait.tid == tid)
