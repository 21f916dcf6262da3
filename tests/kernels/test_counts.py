"""Exact counts by the ways of the kernel that runs: what `make test-kernels` asks of each kernel.

No length of time is compared, so that they also hold on a machine that is emulated.
"""

from concurrent.futures import wait
from itertools import pairwise
from pathlib import Path

import pytest

from accuracy.holds_truth import Witness
from accuracy.truth import Workload, started, thread_truths
from gilscope.gil.plan import CONTENTION, ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window_probes import WindowSites
from gilscope.model.kinds import Mode
from support.interpreters.builds import build
from support.tracing.full_mode import assert_adds_up, assert_sound, held_by, holds_of, tracing
from support.tracing.observations import assert_counts_exactly, thread_of
from support.tracing.trace import command_of, looked_after, observation_of, probe

__all__ = ["probe"]

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_HOLDS = 5
_interpreters = pytest.mark.parametrize("name", ["debian-3.11", "debian-3.14"])


@pytest.mark.parametrize(
    "plan", [CONTENTION, ObservationPlan(Mode.FULL)], ids=["contention", "full"]
)
@_interpreters
def test_waits_are_counted(name: str, plan: ObservationPlan, probe: GilProbe) -> None:
    """
    Each of 23 known waits is counted, whether holds are seen besides or not.
    """
    with (
        tracing(probe, plan) as tracer,
        started(command_of(build(name)), "exact_count.py") as workload,
    ):
        tracer.attach(workload.pid)
        assert_counts_exactly(tracer, workload)
        workload.finish()


def test_waits_for_a_semaphore_are_counted(probe: GilProbe) -> None:
    """
    Each of 20 waits of a thread of CPython 2.7, behind a lock of another kind.
    """
    with (
        tracing(probe, CONTENTION) as tracer,
        started(command_of(build("debian-2.7")), "semaphore_rounds.py") as workload,
    ):
        assert {"waits": True} == workload.answer()
        tracer.attach(workload.pid)
        with looked_after(tracer):
            for said in ("seen", "idle"):
                workload.command()
                assert {said: True} == workload.answer()
            workload.command()
            answer = workload.answer()
            workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        workload.finish()

    assert "" == observation.invalid
    assert 20 == thread_of(observation, answer["tids"]["waiter"]).waits


@_interpreters
def test_holds_are_counted(name: str, probe: GilProbe, tmp_path: Path) -> None:
    """
    Each hold of two threads is there, as the threads have counted and a witness has seen them.
    """
    witness = Witness(tmp_path)
    command = witness.command(command_of(build(name)))
    arguments = ["--rounds", "97", "--threads", "quick,brisk", "--asleep"]
    with tracing(probe) as tracer, started(command, "held_known.py", *arguments) as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            truths = thread_truths(workload.run())
            workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        truth = witness.holds(workload.pid).since(observation.since_ns)
        workload.finish()
    (gil,) = observation.totals.gils

    assert_sound(observation)
    assert_adds_up(observation)
    assert [97, 97] == [thread.holds for thread in truths]
    assert [97, 97] == [held_by(thread_of(observation, thread.tid)).count for thread in truths]
    assert len(truth.finished) == holds_of(gil).finished.count


@_interpreters
def test_holds_of_windows_are_counted(name: str, probe: GilProbe, tmp_path: Path) -> None:
    """
    Those of a thread while a window is open, as a witness has noted them, and none in between.
    """
    witness = Witness(tmp_path)
    command = witness.command(command_of(build(name)))
    with tracing(probe, CONTENTION) as tracer, started(command, "hold_long.py") as workload:
        target = tracer.attach(workload.pid)
        traced = tracer._processes.by_pid[workload.pid]  # noqa: SLF001 - it opens windows by itself only
        sites = WindowSites(
            traced.hooks(target.acquires), traced.hooks(target.releases), inside_hold_ns=0
        )
        traced.window = window = probe.window(workload.pid, sites, traced.runtime.locks)
        noted = [len(witness.holds(workload.pid).of(workload.ready["holder"]))]
        for number in range(6):
            if number % 2:
                window.open()
            _hold(workload)
            noted.append(len(witness.holds(workload.pid).of(workload.ready["holder"])))
            window.end()
            while not window.can_open:
                window.settle()
        observation = observation_of(tracer, workload.pid)
        wait(window.close())
        workload.finish()
    holds = [after - before for before, after in pairwise(noted)]

    assert_sound(observation)
    assert min(holds) >= _HOLDS
    assert sum(holds[1::2]) == held_by(thread_of(observation, workload.ready["holder"])).count


def _hold(workload: Workload) -> None:
    """Have the holder hold five times, and let all threads sleep."""
    workload.await_rest()
    workload.command(f"hold{_HOLDS * ' 0.002'}")
    while not workload.answer().get("holds"):
        pass
    workload.await_rest()
