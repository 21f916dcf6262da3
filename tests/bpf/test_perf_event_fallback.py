"""Kernels without uprobe links: one perf event for each place, and the same numbers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accuracy.holds_truth import Witness
from accuracy.truth import started, thread_truths
from gilscope.bpf.features import Features
from gilscope.gil.plan import CONTENTION, ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.model.kinds import Mode
from support.interpreters.builds import build
from support.tracing.bpf_tables import held_of
from support.tracing.full_mode import assert_adds_up, assert_sound, held_by, holds_of, tracing
from support.tracing.observations import assert_counts_exactly, thread_of
from support.tracing.trace import command_of, looked_after, observation_of

pytestmark = pytest.mark.live

_on_two_interpreters = pytest.mark.parametrize("name", ["debian-3.11", "pyenv-3.12"])


@pytest.fixture(scope="module")
def unlinked_probe() -> Iterator[GilProbe]:
    """The probes as before Linux 6.10, where a perf event brings no number to its program."""
    with GilProbe(features=Features(uprobe_links=False)) as loaded:
        yield loaded


@pytest.mark.beside_others
@_on_two_interpreters
@pytest.mark.parametrize(
    "plan", [CONTENTION, ObservationPlan(Mode.FULL)], ids=["contention", "full"]
)
def test_waits_are_counted_exactly(
    name: str, plan: ObservationPlan, unlinked_probe: GilProbe
) -> None:
    """
    Each of the known waits is counted, whether holds are seen besides or not.
    """
    with (
        tracing(unlinked_probe, plan) as tracer,
        started(command_of(build(name)), "exact_count.py") as workload,
    ):
        tracer.attach(workload.pid)
        assert_counts_exactly(tracer, workload)
        workload.finish()


@_on_two_interpreters
def test_holds_are_counted_exactly(name: str, unlinked_probe: GilProbe, tmp_path: Path) -> None:
    """
    Each hold of two threads is there, as the threads have counted and a witness has seen them.
    """
    witness = Witness(tmp_path)
    command = witness.command(command_of(build(name)))
    arguments = ["--rounds", "97", "--threads", "quick,brisk", "--asleep"]
    with (
        tracing(unlinked_probe) as tracer,
        started(command, "held_known.py", *arguments) as workload,
    ):
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
    assert len(truth.switches) == holds_of(gil).switch_latency.count


@pytest.mark.beside_others
def test_two_processes_are_told_apart(unlinked_probe: GilProbe) -> None:
    """
    The probes do not carry a number: whose hold it is, the process itself has to tell.
    """
    commands = [command_of(build("debian-3.11"))] * 2
    with (
        tracing(unlinked_probe) as tracer,
        started(commands[0], "held_known.py", "--rounds", "23", "--threads", "quick") as first,
        started(commands[1], "held_known.py", "--rounds", "41", "--threads", "quick") as second,
    ):
        for workload in (first, second):
            tracer.attach(workload.pid)
        with looked_after(tracer):
            truths = [thread_truths(workload.run()) for workload in (first, second)]
        seen = [observation_of(tracer, workload.pid) for workload in (first, second)]

    for observation, (truth,), rounds in zip(seen, truths, (23, 41), strict=True):
        assert_sound(observation)
        assert rounds == truth.holds == held_by(thread_of(observation, truth.tid)).count


@pytest.mark.beside_others
def test_nothing_is_left_of_a_process(unlinked_probe: GilProbe) -> None:
    """
    Neither in the tables, nor does it keep its places in the arrays.
    """
    with started(command_of(build("debian-3.11")), "exact_count.py") as workload:
        with tracing(unlinked_probe) as tracer:
            tracer.attach(workload.pid)
            workload.run()
            assert {"targets", "threads", "slots"} <= set(held_of(unlinked_probe, workload.pid))
        assert {} == held_of(unlinked_probe, workload.pid)
        workload.finish()
