"""Waits against clocks in C inside the target, on every interpreter that can be had."""

from dataclasses import replace
from pathlib import Path

import pytest

from accuracy.holds_truth import Holds, Witness
from accuracy.truth import ThreadTruth, Waits, known_waits, started
from gilscope.gil.tracer import Tracer
from gilscope.model import Cause, Kind, Tally, ThreadTotals
from interpreters import ALL_INTERPRETERS, Interpreter, find_interpreter
from tracing import command_of, looked_after, missed_events, observation_of

pytestmark = [pytest.mark.live, pytest.mark.slow]

_SECONDS = 6
"""So that the busiest thread, which waits least, waits for more than a second too."""

_TOLERANCE = 0.01

_SWITCH_INTERVAL_NS = 5_000_000
"""Python's default, which makes a convoy of a wait after a blocking call."""

_SLACK_NS = 20_000_000
"""For a cause that makes up next to nothing of a thread's waits: 20 ms of 6 s."""


@pytest.mark.parametrize("interpreter", ALL_INTERPRETERS)
def test_waits_of_each_thread_are_right_to_one_percent(
    interpreter: Interpreter, tracer: Tracer, tmp_path: Path
) -> None:
    """
    Each thread's waiting time agrees with a clock in C, in all and by cause.
    """
    witness = Witness(tmp_path)
    command = witness.command(command_of(interpreter))
    with started(command, "known_waits.py", "--seconds", str(_SECONDS)) as workload:
        target = tracer.attach(workload.pid)
        with looked_after(tracer):
            truth = known_waits(workload.run())
        observation = observation_of(tracer, workload.pid)
        witnessed = witness.holds(workload.pid).since(observation.since_ns)
        workload.finish()
    found = {thread.tid: thread for thread in observation.totals.threads}

    assert "sites" == target.process.method
    assert {} == missed_events(observation)
    assert "" == observation.invalid
    for thread in truth.threads:
        seen = found[thread.tid]
        assert thread.total.wait_ns > 1_000_000_000
        true = _by_cause(thread, witnessed)
        _assert_agrees(true, true.total, Tally(seen.wait_ns, seen.waits))
        _assert_agrees(true, true.preemption, seen.lost[Kind.PREEMPTION])
        _assert_agrees(true, true.blocking_call, _after_blocking_call(seen))
        if thread.kernel is None:
            assert true.total.waits == seen.waits, thread.name
        assert seen.convoy_waits == pytest.approx(true.convoy_waits, abs=2)
        assert thread.role is not None
        assert _base(thread.role) == _base(seen.role or "")


@pytest.mark.parametrize("name", ["debian-3.11", "pyenv-3.12-stripped", "pyenv-3.13"])
def test_libc_method_agrees_once_it_has_learned(name: str, tracer: Tracer) -> None:
    """
    Without the call sites, what is not counted as lost is still right; causes are unknown.
    """
    libc = Tracer(tracer.probe, tracer.cache, method="libc")
    try:
        command = command_of(find_interpreter(name))
        with started(command, "known_waits.py", "--seconds", str(_SECONDS)) as workload:
            target = libc.attach(workload.pid)
            with looked_after(libc):
                truth = known_waits(workload.run())
            observation = observation_of(libc, workload.pid)
            workload.finish()
    finally:
        libc.close()
        libc.drop(workload.pid)
    found = {thread.tid: thread for thread in observation.totals.threads}

    assert "libc" == target.process.method
    assert {"began_unseen", "return_unknown"} >= set(missed_events(observation))
    assert observation.totals.gils[0].waits[Cause.BLOCKING_CALL].count == 0
    for thread in truth.threads:
        # Until the first wait of each kind has shown where it returns, waits are lost and counted.
        assert thread.total.wait_ns * 0.95 - thread.uncertain_ns <= found[thread.tid].wait_ns
        assert found[thread.tid].wait_ns <= thread.total.wait_ns * (1 + _TOLERANCE)


def _by_cause(thread: ThreadTruth, witnessed: Holds) -> ThreadTruth:
    """Return *thread* with the best clock there is for its waits.

    One whose calls are in C times them as a whole. In them it also wakes up another thread, which
    takes some 50 µs on virtual machines and is no wait: a witness in the process sees the wait
    alone. A thread of pure Python does that where the probes and its own clock count it as waiting.
    """
    if thread.kernel is not None:
        return thread
    waits = [wait for wait in witnessed.waits if wait.tid == thread.tid]
    yields_ns = [wait.ns for wait in waits if wait.is_yield]
    calls_ns = [wait.ns for wait in waits if not wait.is_yield]

    return replace(
        thread,
        total=Waits(len(waits), sum(wait.ns for wait in waits)),
        preemption=Waits(len(yields_ns), sum(yields_ns)),
        blocking_call=Waits(len(calls_ns), sum(calls_ns)),
        uncertain_ns=0,
        convoy_waits=sum(ns >= _SWITCH_INTERVAL_NS for ns in calls_ns),
    )


def _assert_agrees(thread: ThreadTruth, truth: Waits, seen: Tally) -> None:
    lower_ns = truth.wait_ns - thread.uncertain_ns - _SLACK_NS
    upper_ns = truth.wait_ns + _SLACK_NS
    if truth.wait_ns > 1_000_000_000:
        lower_ns = int(truth.wait_ns * (1 - _TOLERANCE)) - thread.uncertain_ns
        upper_ns = int(truth.wait_ns * (1 + _TOLERANCE))
    assert lower_ns <= seen.ns <= upper_ns, (thread.name, truth, seen)


def _after_blocking_call(thread: ThreadTotals) -> Tally:
    return thread.lost[Kind.BLOCKING_CALL] + thread.lost[Kind.CONVOY]


def _base(role: str) -> str:
    # The file's name is shortened from the process' working directory, which the truth ignores.
    return role.replace("tests/workloads/", "")
