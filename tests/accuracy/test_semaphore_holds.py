"""Holds of CPython 2.7 against a clock around the calls that take and give back its semaphore."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gilscope.budget.trap_costs import TrapCosts
from gilscope.gil.calibration.measure import measure_trap_costs
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.model.gil import GilObservation
from gilscope.model.kinds import Mode
from support.interpreters.interpreter import Interpreter
from support.interpreters.known import CPYTHON_27
from support.paths import WORKLOADS
from support.tracing.full_mode import (
    assert_adds_up,
    assert_sound,
    held_by,
    holds_of,
    observed_ns,
    tracing,
)
from support.tracing.observations import thread_of
from support.tracing.trace import looked_after, observation_of

pytestmark = pytest.mark.live

_TICK = 100
_TRUTH_NS = 1_000_000_000
_TOLERANCE = 0.01
_COMPILER = ("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


@dataclass(frozen=True, slots=True)
class _Run:
    seen: GilObservation
    tids: Mapping[str, int]
    truth: Mapping[int, tuple[int, int]]
    """Nanoseconds and number of the holds of the lock, by thread."""


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that reads the truth."""
    built = tmp_path_factory.mktemp("clock") / "clock.so"
    source = WORKLOADS / "semaphore_clock.c"
    subprocess.run([*_COMPILER, "-o", str(built), str(source), "-ldl"], check=True)
    return built


@pytest.fixture
def trap_costs(probe: GilProbe) -> TrapCosts:
    """What a trap costs just now: holds here last for less than two, and it drifts."""
    return measure_trap_costs(probe)


def _run(probe: GilProbe, interpreter: Interpreter, clock: Path, plan: ObservationPlan) -> _Run:
    out = clock.parent / "truth"
    script = str(WORKLOADS / "semaphore_holds.py")
    command = interpreter.command(script, "2.5", str(_TICK), "left,keep,quick")
    environment = interpreter.environment(LD_PRELOAD=str(clock), CLOCK_OUT=str(out))
    pipe = subprocess.PIPE
    with (
        tracing(probe, plan) as tracer,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as program,
    ):
        assert program.stdout is not None
        assert program.stdin is not None
        assert int(program.stdout.readline()) == program.pid
        tracer.attach(program.pid)
        with looked_after(tracer):
            program.stdin.write(b"go\n")
            program.stdin.close()
            tids = json.loads(program.stdout.read())
            program.wait()
        seen = observation_of(tracer, program.pid)
    (gil,) = seen.totals.gils
    lines = [tuple(map(int, line.split())) for line in out.read_text().splitlines()]
    truth = {tid: (ns, holds) for lock, tid, ns, holds in lines if lock == gil.gil.cond}
    return _Run(seen, tids, truth)


@pytest.mark.parametrize("interpreter", CPYTHON_27)
def test_every_hold_is_counted_and_takes_as_long_as_the_clock_shows(
    interpreter: Interpreter, probe: GilProbe, trap_costs: TrapCosts, clock: Path
) -> None:
    """
    Tens of thousands of holds, each once; and the time of a thread that holds for a second or more.

    Holds of microseconds have no such time: whoever is preempted in a trap has the lock already,
    and the clock does not see that.
    """
    run = _run(probe, interpreter, clock, ObservationPlan(Mode.FULL, costs=trap_costs))
    (gil,) = run.seen.totals.gils

    assert_sound(run.seen)
    assert_adds_up(run.seen)
    for name, tid in run.tids.items():
        ns, holds = run.truth[tid]
        held = held_by(thread_of(run.seen, tid))
        assert holds == held.count > 50, name
        assert held.ns >= ns * (1 - _TOLERANCE), name
    ns, _ = run.truth[run.tids["keep"]]
    assert ns > _TRUTH_NS
    assert ns == pytest.approx(held_by(thread_of(run.seen, run.tids["keep"])).ns, rel=_TOLERANCE)
    assert run.truth[run.tids["left"]][1] > 10_000
    assert holds_of(gil).switch_latency.count > 100


def test_windows_see_a_part_of_them(probe: GilProbe, trap_costs: TrapCosts, clock: Path) -> None:
    """
    In auto mode holds are seen in windows, as the budget allows, and none is torn by their edges.
    """
    interpreter = CPYTHON_27[0].values[0]  # type: ignore[attr-defined]
    run = _run(probe, interpreter, clock, ObservationPlan(Mode.AUTO, 0.3, trap_costs))
    (gil,) = run.seen.totals.gils

    assert_sound(run.seen)
    assert_adds_up(run.seen)
    assert 0 < observed_ns(run.seen) < run.seen.totals.at_ns - run.seen.since_ns
    assert 0 < holds_of(gil).finished.count < sum(holds for _, holds in run.truth.values())
