"""Programs with an exactly known number of waits, also the number zero."""

import pytest

from accuracy.truth import ExactCounts, exact_counts, started, thread_truths
from gilscope.gil.tracer import Tracer
from gilscope.histogram import slot_of, total
from gilscope.model import Cause, Kind, Observation
from interpreters import ALL_INTERPRETERS, ONE_PER_MINOR, Interpreter
from tracing import command_of, looked_after, missed_events, observation_of

pytestmark = pytest.mark.live


_TRIES = 10
"""A machine that stalls for 2 ms in the wrong place spoils the program's own answer."""


@pytest.mark.parametrize("interpreter", ALL_INTERPRETERS)
def test_twenty_three_waits_are_twenty_three(interpreter: Interpreter, tracer: Tracer) -> None:
    """
    A thread that waits 23 times, 7 of them in a convoy, is reported exactly so.
    """
    for _ in range(_TRIES):
        truth, observation = _exact_run(interpreter, tracer)
        if truth.is_exact:
            break
    assert truth.is_exact, "the machine stalled in every run; this proves nothing"
    (gil,) = observation.totals.gils
    (waiter,) = [thread for thread in observation.totals.threads if thread.tid == truth.waiter.tid]

    assert 23 == truth.waits == waiter.waits
    assert 16 == waiter.lost[Kind.BLOCKING_CALL].count
    assert 7 == truth.convoy_waits == waiter.convoy_waits == gil.convoy_waits
    assert 0 == waiter.forced_switches
    assert 7 == truth.drop_requests == gil.drop_latency.count
    assert waiter.drop_requests == gil.drop_requests
    if truth.timeouts_are_exact:
        # That many fit into the waits; one that is late on a busy CPU leaves room for one less.
        assert truth.timeouts - 2 <= waiter.drop_requests <= truth.timeouts
    assert {} == missed_events(observation)
    # Each wait lies in the slot of its length, or in the next one if it is that close to the bound.
    expected = [slot_of(ns) for ns in truth.wait_ns]
    counted = [
        slot
        for slot, count in enumerate(gil.waits[Cause.BLOCKING_CALL].slots)
        for _ in range(count)
    ]
    assert sorted(expected) == counted


@pytest.mark.parametrize("interpreter", ONE_PER_MINOR)
def test_foreign_condition_variables_are_not_the_gil(
    interpreter: Interpreter, tracer: Tracer
) -> None:
    """
    Seconds of waiting on other condition variables, GIL look-alikes among them, count as nothing.
    """
    for method in ("sites", "libc"):
        one = Tracer(tracer.probe, tracer.cache, method=method)
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


def test_five_hundred_threads_are_all_counted(tracer: Tracer) -> None:
    """
    400 of 500 threads wait three times each; none is lost or mistaken.
    """
    with started(["/usr/bin/python3"], "many_threads.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            answer = workload.run()
        observation = observation_of(tracer, workload.pid)
        workload.finish()
    waiters = {thread.tid for thread in thread_truths(answer) if thread.name == "waiter"}
    counted = {
        thread.tid: thread.lost[Kind.BLOCKING_CALL].count + thread.convoy_waits
        for thread in observation.totals.threads
        if thread.tid in waiters
    }

    assert dict.fromkeys(waiters, 3) == counted
    assert {} == missed_events(observation)
    assert 400 == len({thread.tid for thread in observation.totals.threads} & waiters)


def _exact_run(interpreter: Interpreter, tracer: Tracer) -> tuple[ExactCounts, Observation]:
    with started(command_of(interpreter), "exact_count.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            truth = exact_counts(workload.run())
        observation = observation_of(tracer, workload.pid)
        workload.finish()
    return truth, observation
