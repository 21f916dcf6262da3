"""Waits against clocks in C inside the target, on every interpreter that can be had."""

from dataclasses import replace
from pathlib import Path

import pytest

from accuracy.holds_truth import Holds, Witness
from accuracy.truth import ThreadTruth, Waits, known_waits, started
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import Tally, ThreadTotals
from gilscope.model.kinds import Cause, Kind
from gilscope.runtimes.site_cache import SiteCache
from support.interpreters.known import TIMED_INTERPRETERS, Interpreter, find_interpreter
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = [pytest.mark.live, pytest.mark.slow]

_SECONDS = 6
"""So that the busiest thread, which waits least, waits for more than a second too."""

_TOLERANCE = 0.01

_SWITCH_INTERVAL_NS = 5_000_000
"""Python's default, which makes a convoy of a wait after a blocking call."""

_SLACK_NS = 20_000_000
"""For a cause that makes up next to nothing of a thread's waits: 20 ms of 6 s."""


@pytest.mark.parametrize("interpreter", TIMED_INTERPRETERS)
def test_waits_of_each_thread_are_right_to_one_percent(
    interpreter: Interpreter, tracer: GilAccount, tmp_path: Path
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
        # So much that a hundredth of it is more than two clocks differ by.
        assert thread.total.wait_ns > 500_000_000
        true = _by_cause(thread, witnessed)
        _assert_agrees(true.total, Tally(seen.wait_ns, seen.waits))
        _assert_agrees(true.preemption, seen.lost[Kind.PREEMPTION])
        _assert_agrees(true.blocking_call, _after_blocking_call(seen))
        assert seen.convoy_waits == pytest.approx(true.convoy_waits, abs=2)
        assert thread.role is not None
        assert _base(thread.role) == _base(seen.role or "")


@pytest.mark.parametrize("name", ["debian-3.11", "pyenv-3.12-stripped", "pyenv-3.13"])
def test_libc_method_agrees_once_it_has_learned(
    name: str, tracer: GilAccount, site_cache: SiteCache, tmp_path: Path
) -> None:
    """
    Without the call sites, what is not counted as lost is still right; causes are unknown.
    """
    libc = GilAccount(tracer.probe, site_cache, method="libc")
    try:
        witness = Witness(tmp_path)
        command = witness.command(command_of(find_interpreter(name)))
        with started(command, "known_waits.py", "--seconds", str(_SECONDS)) as workload:
            target = libc.attach(workload.pid)
            with looked_after(libc):
                truth = known_waits(workload.run())
            observation = observation_of(libc, workload.pid)
            witnessed = witness.holds(workload.pid).since(observation.since_ns)
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
        wait_ns = sum(wait.ns for wait in witnessed.waits if wait.tid == thread.tid)
        assert wait_ns * 0.95 <= found[thread.tid].wait_ns <= wait_ns * (1 + _TOLERANCE)


def _by_cause(thread: ThreadTruth, witnessed: Holds) -> ThreadTruth:
    """Return *thread* with what a witness in the process knows of its waits.

    The thread's own clock times whole calls. In them it also wakes up another thread, which takes
    some 50 µs on virtual machines and is no wait; and where the host takes the CPU away from a
    thread that computes in Python, that looks like one.
    """
    if thread.kernel is None:
        yields_ns, calls_ns = witnessed.yields_ns(thread.tid), witnessed.calls_ns(thread.tid)
    else:
        yields_ns, calls_ns = witnessed.gaps_ns(thread.tid), witnessed.first_wait_ns(thread.tid)

    return replace(
        thread,
        total=_sum(yields_ns + calls_ns),
        preemption=_sum(yields_ns),
        blocking_call=_sum(calls_ns),
        convoy_waits=sum(ns >= _SWITCH_INTERVAL_NS for ns in calls_ns),
    )


def _sum(lengths_ns: list[int]) -> Waits:
    return Waits(len(lengths_ns), sum(lengths_ns))


def _assert_agrees(truth: Waits, seen: Tally) -> None:
    assert truth.waits == seen.count
    assert seen.ns == pytest.approx(
        truth.wait_ns,
        rel=_TOLERANCE,
        abs=_SLACK_NS if truth.wait_ns <= 1_000_000_000 else 0,
    )


def _after_blocking_call(thread: ThreadTotals) -> Tally:
    return thread.lost[Kind.BLOCKING_CALL] + thread.lost[Kind.CONVOY]


def _base(role: str) -> str:
    # The file's name is shortened from the process' working directory, which the truth ignores.
    return role.replace("tests/workloads/", "")
