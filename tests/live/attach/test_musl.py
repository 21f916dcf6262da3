"""CPython with musl, the C library of Alpine: its lock is built of other code than glibc's."""

import pytest

from accuracy.truth import started, thread_truths
from gilscope.gil.plan import CONTENTION, ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.kinds import Mode
from gilscope.runtimes.site_cache import SiteCache
from support.interpreters.known import MUSL, Interpreter
from support.tracing.full_mode import assert_adds_up, assert_sound, held_by, tracing
from support.tracing.observations import assert_counts_exactly, thread_of
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_TOLERANCE = 0.05
"""Of a method that learns while it counts."""


@pytest.mark.parametrize(
    "plan", [CONTENTION, ObservationPlan(Mode.FULL)], ids=["contention", "full"]
)
@pytest.mark.parametrize("interpreter", MUSL)
def test_waits_are_counted(
    interpreter: Interpreter, plan: ObservationPlan, probe: GilProbe
) -> None:
    """
    A thread that waits 23 times is reported exactly so, by the call sites.
    """
    with tracing(probe, plan) as tracer, started(command_of(interpreter), "exact_count.py") as run:
        target = tracer.attach(run.pid)
        assert_counts_exactly(tracer, run)
        run.finish()

    assert "sites" == target.process.method


@pytest.mark.parametrize("interpreter", MUSL)
def test_holds_are_counted(interpreter: Interpreter, probe: GilProbe) -> None:
    """
    97 of each of two threads, as these have counted them.
    """
    arguments = ["--rounds", "97", "--threads", "quick,brisk", "--asleep"]
    with (
        tracing(probe) as tracer,
        started(command_of(interpreter), "held_known.py", *arguments) as workload,
    ):
        tracer.attach(workload.pid)
        with looked_after(tracer):
            truths = thread_truths(workload.run())
            workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        workload.finish()
    holds = [held_by(thread_of(observation, thread.tid)) for thread in truths]

    assert_sound(observation)
    assert_adds_up(observation)
    assert [97, 97] == [thread.holds for thread in truths] == [each.count for each in holds]


@pytest.mark.parametrize("interpreter", MUSL)
def test_libc_method_finds_the_functions_of_musl(
    interpreter: Interpreter, probe: GilProbe, site_cache: SiteCache
) -> None:
    """
    Once it has learned where they return, waits of a known length are counted by it as well.
    """
    tracer = GilAccount(probe, site_cache, method="libc")
    with started(command_of(interpreter), "known_waits.py", "--seconds", "3") as workload:
        target = tracer.attach(workload.pid)
        with looked_after(tracer):
            truths = thread_truths(workload.run())
        observation = observation_of(tracer, workload.pid)
        workload.finish()
    tracer.close()
    tracer.drop(workload.pid)
    seen_ns = sum(thread_of(observation, thread.tid).wait_ns for thread in truths)

    assert "libc" == target.process.method
    assert {"began_unseen", "return_unknown"} >= set(missed_events(observation))
    assert seen_ns == pytest.approx(sum(thread.total.wait_ns for thread in truths), rel=_TOLERANCE)
