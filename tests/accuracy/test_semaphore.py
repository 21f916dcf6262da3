"""CPython 2.7, whose lock is a semaphore: waits that a program makes one by one, and knows of."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from accuracy.truth import Answer, Workload, started
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation, ThreadTotals
from gilscope.model.kinds import Kind
from gilscope.process.attachment import Retention
from gilscope.runtimes.site_cache import SiteCache
from support.interpreters.interpreter import Interpreter
from support.interpreters.known import CPYTHON_27
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = pytest.mark.live

_ROUNDS, _VAIN = 20, 3
_SCRIPT = "semaphore_rounds.py"


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the program, and what has been counted of it."""

    answer: Answer
    idle_traps: int
    """While one thread after the other had the lock, and nobody waited."""
    seen: GilObservation

    def thread(self, name: str) -> ThreadTotals | None:
        """Return what has been counted of one of the program's threads, None for nothing."""
        tid = self.answer["tids"][name]
        found = [thread for thread in self.seen.totals.threads if thread.tid == tid]
        return found[0] if found else None


@pytest.fixture(scope="module", params=CPYTHON_27)
def run(request: pytest.FixtureRequest, probe: GilProbe, site_cache: SiteCache) -> Iterator[_Run]:
    """One interpreter: all tests share what has run on it."""
    interpreter: Interpreter = request.param
    tracer = GilAccount(probe, site_cache)
    try:
        with started(command_of(interpreter), _SCRIPT) as workload:
            yield _run(workload, tracer)
    finally:
        tracer.close()
        tracer.drop_ended(Retention(0), set())


def _run(workload: Workload, tracer: GilAccount) -> _Run:
    assert workload.answer() == {"waits": True}
    tracer.attach(workload.pid)
    with looked_after(tracer):
        workload.command()
        assert workload.answer() == {"seen": True}
        before = _traps(tracer, workload.pid)
        workload.command()
        assert workload.answer() == {"idle": True}
        idle_traps = _traps(tracer, workload.pid) - before
        workload.command()
        answer = workload.answer()
        workload.await_rest()
    seen = observation_of(tracer, workload.pid)
    workload.finish()
    return _Run(answer, idle_traps, seen)


def _traps(tracer: GilAccount, pid: int) -> int:
    cost = observation_of(tracer, pid).totals.cost
    assert cost is not None
    return cost.traps


def test_every_wait_is_counted_once_behind_its_holder(run: _Run) -> None:
    """
    Twenty waits of a thread are twenty, in the kind and behind the line that they were behind.
    """
    waiter = run.thread("waiter")
    assert waiter is not None
    at_waiter = [
        edge
        for edge in run.seen.totals.edges
        if edge.waiter.frames and edge.waiter.frames[0].function == "waiter"
    ]

    assert _ROUNDS == waiter.waits == waiter.lost[Kind.CONVOY].count
    assert {_line("os.read(wake, 1)", "ended")} == {
        edge.waiter.frames[0].line for edge in at_waiter
    }
    assert [(("hold", "rounds", "main"), _ROUNDS)] == [
        (tuple(frame.function for frame in edge.holder.frames[:3]), edge.lost.count)
        for edge in at_waiter
    ]
    assert "waiter (semaphore_rounds.py:" in (waiter.role or "")


def test_the_time_of_waits_lies_between_clocks_on_both_sides(run: _Run) -> None:
    """
    It waited for certain between the inner ones, and so it did after failed wake-ups.
    """
    waiter = run.thread("waiter")
    assert waiter is not None
    outer_ns = inner_ns = failed_outer_ns = failed_inner_ns = 0
    for woken, waits, first_wake, failed, release, ended in run.answer["rounds"]:
        outer_ns += ended - woken
        inner_ns += release - waits
        failed_outer_ns += ended - first_wake
        failed_inner_ns += release - failed

    assert inner_ns > 1_000_000_000
    assert inner_ns <= waiter.wait_ns <= outer_ns
    assert failed_inner_ns <= waiter.failed_wakeups.ns <= failed_outer_ns


def test_every_failed_wakeup_is_counted(run: _Run) -> None:
    """
    A thread that is woken three times in each wait while the lock is taken has sixty of them.
    """
    waiter = run.thread("waiter")
    assert waiter is not None

    assert _ROUNDS * _VAIN == waiter.failed_wakeups.count


def test_other_semaphores_are_not_the_lock(run: _Run) -> None:
    """
    A thread that waits for a `thread.lock` has waited for the GIL not once.
    """
    other = run.thread("other")

    assert other is None or (0, 0) == (other.waits, other.wait_ns)


def test_what_began_before_is_counted_apart(run: _Run) -> None:
    """
    A wait in flight when the probes came is no wait, but one event that had begun unseen.
    """
    unseen = run.thread("unseen")

    assert unseen is None or (0, 0) == (unseen.waits, unseen.wait_ns)
    assert {"began_unseen": 1} == missed_events(run.seen)


def test_nobody_pays_while_nobody_waits(run: _Run) -> None:
    """
    Twenty thousand calls that release the lock and take it back meet no probe.
    """
    assert 0 == run.idle_traps


def test_a_thread_that_computes_waits_after_its_ticks(run: _Run) -> None:
    """
    Of two threads that compute side by side, no wait comes after a blocking call but the first.
    """
    for name in ("left", "right"):
        thread = run.thread(name)
        assert thread is not None
        after_calls = thread.lost[Kind.BLOCKING_CALL].count + thread.convoy_waits

        assert thread.lost[Kind.PREEMPTION].count > 0
        assert after_calls <= 1
        assert 0 == thread.lost[Kind.UNKNOWN].count


def test_what_such_a_lock_cannot_have_is_not_there(run: _Run) -> None:
    """
    Nobody asks for it: there are no requests; but there is an interval of ticks.
    """
    (gil,) = run.seen.totals.gils

    assert "" == run.seen.invalid
    assert not run.seen.process.asks_holder
    assert (0, 0) == (gil.drop_requests, gil.drop_latency.count)
    assert 1_000_000_000 == run.seen.totals.check_interval


def _line(code: str, function_part: str) -> int:
    """Return the line of *code* in the program that is followed by one that has *function_part*."""
    lines = (Path(__file__).parents[1] / "workloads" / _SCRIPT).read_text().splitlines()
    (found,) = [
        number
        for number, (line, following) in enumerate(pairwise(lines), 1)
        if line.strip() == code and function_part in following
    ]
    return found
