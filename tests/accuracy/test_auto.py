"""Auto mode as users have it: what windows and looks from outside say about all the time."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from accuracy.holds_truth import Holds, Witness, held_ns
from accuracy.truth import Workload, started
from gilscope.budget.trap_costs import TrapCosts
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from gilscope.model.kinds import Mode
from support.interpreters.known import Interpreter, Unavailable, find_interpreter
from support.tracing.full_mode import assert_sound, holds_of, observed_ns, tracing
from support.tracing.trace import command_of, looked_after, observation_of

pytestmark = [pytest.mark.live, pytest.mark.slow]

_AS_USERS = ("debian-3.11", "pyenv-3.8", "debian-3.14")

_TOLERANCE = 0.05
_WAIT_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class _Minute:
    """What has been seen of a workload in auto mode, and what its witness says."""

    observation: GilObservation
    truth: Holds


class _Stage:
    """Interpreters that run side by side for a minute, each of which uses half a processor."""

    def __init__(self, probe: GilProbe, costs: TrapCosts, folders: Callable[[], Path]) -> None:
        self._probe = probe
        # Where the waits of these programs alone use up the budget there are no windows, and some
        # machines are that slow. With these prices there are some everywhere, and not always.
        prices = replace(costs, contention_ns=500.0, full_ns=2_000.0, stepped_ns=2_000.0)
        self._plan = ObservationPlan(Mode.AUTO, costs=prices)
        self._folders = folders
        self._seen: dict[str, _Minute] = {}

    def forget(self) -> None:
        """Let them run again when one is asked for."""
        self._seen.clear()

    def seen(self, name: str) -> _Minute:
        """Return the minute of the interpreter *name*; raises Unavailable if there is none."""
        interpreter = find_interpreter(name)
        if not self._seen:
            self._seen = self._play()
        return self._seen[interpreter.name]

    def _play(self) -> dict[str, _Minute]:
        # At the real-time priority of the workload the agent would look only when a CPU became
        # free.
        arguments = ["--seconds", "60", "--threads", "mixed,brisk,brisk", "--policy", "other"]
        with contextlib.ExitStack() as stack:
            tracer = stack.enter_context(tracing(self._probe, self._plan))
            running = {}
            for interpreter in _available(_AS_USERS):
                witness = Witness(self._folders())
                command = witness.command(command_of(interpreter))
                workload = stack.enter_context(started(command, "held_known.py", *arguments))
                tracer.attach(workload.pid)
                running[interpreter.name] = workload, witness
            with looked_after(tracer):
                for workload, _ in running.values():
                    workload.command()
                for workload, _ in running.values():
                    workload.answer()
                    workload.await_rest()
            return {
                name: _minute(tracer, workload, witness)
                for name, (workload, witness) in running.items()
            }


def _available(names: Sequence[str]) -> Iterator[Interpreter]:
    for name in names:
        with contextlib.suppress(Unavailable):
            yield find_interpreter(name)


def _minute(tracer: GilAccount, workload: Workload, witness: Witness) -> _Minute:
    observation = observation_of(tracer, workload.pid)
    truth = witness.holds(workload.pid).since(observation.since_ns)
    workload.finish()
    return _Minute(observation, truth)


@pytest.fixture(scope="module")
def stage(
    probe: GilProbe, trap_costs: TrapCosts, tmp_path_factory: pytest.TempPathFactory
) -> _Stage:
    """All tests of auto mode share its minute."""
    return _Stage(probe, trap_costs, lambda: tmp_path_factory.mktemp("minute"))


@pytest.mark.parametrize("name", _AS_USERS)
def test_held_time_and_waits_are_right_to_five_percent(name: str, stage: _Stage) -> None:
    """
    With windows for a part of the time, all held time and all waits come out right.
    """
    minute = stage.seen(name)
    observation, truth = minute.observation, minute.truth
    (gil,) = observation.totals.gils
    at_ns, since_ns = observation.totals.at_ns, observation.since_ns
    true_ns = held_ns(truth.all, since_ns, at_ns)

    assert_sound(observation)
    assert gil.held_ns is not None
    assert gil.held_ns == pytest.approx(true_ns, rel=_TOLERANCE)
    assert gil.held_ns <= at_ns - since_ns
    wait_ns = sum(thread.wait_ns for thread in observation.totals.threads)
    assert wait_ns == pytest.approx(sum(wait.ns for wait in truth.waits), rel=_WAIT_TOLERANCE)
    # Neither kind of looking has done it alone.
    assert 0 < observed_ns(observation) < 0.9 * (at_ns - since_ns)
    assert 0 < holds_of(gil).finished.count < len(truth.finished)
