"""Holds and switches in full mode, against clocks in C and a witness inside the target."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from accuracy.holds_truth import Holds, Witness, assert_same_lengths
from accuracy.truth import Answer, ThreadTruth, Workload, started, thread_truths
from gilscope.budget.trap_costs import TrapCosts
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation, ThreadTotals
from gilscope.model.histogram import total
from gilscope.model.kinds import Mode
from support.interpreters.known import TIMED_INTERPRETERS, TIMED_MINORS, Interpreter
from support.tracing.full_mode import (
    assert_adds_up,
    assert_sound,
    held_by,
    holds_of,
    observed_ns,
    tracing,
)
from support.tracing.observations import thread_of
from support.tracing.trace import command_of, looked_after, observation_of

pytestmark = pytest.mark.live

_TOLERANCE = 0.01

_SECOND_NS = 1_000_000_000

_ENDS_NS = 50_000
"""What may come between an event and the note of it, at each end of a hold."""

_WAIT_SLACK_NS = 20_000_000
"""As much as a hundredth of two seconds."""

_BOOKKEEPING = 0.03
"""Of a thread's time its clock may spend on reading what the scheduler says."""


@pytest.fixture
def tracer(probe: GilProbe, trap_costs: TrapCosts) -> Iterator[GilAccount]:
    """A tracer in full mode, as users have it: it knows what its own probes add to a hold."""
    with tracing(probe, ObservationPlan(Mode.FULL, costs=trap_costs)) as made:
        yield made


# Against two clocks: of the threads, which begins a little late and ends a little early, and of a
# witness inside the target. A thread that has just taken the GIL first wakes another that waits to
# hear of it, which takes some 50 µs on virtual machines: only the witness sees that as a part of
# the hold. A thread of pure Python cannot tell where it was made to yield from where the host took
# the CPU away, so of that only the witness is asked.


@pytest.mark.slow
@pytest.mark.parametrize("interpreter", TIMED_INTERPRETERS)
def test_holds_of_each_thread_are_right_to_one_percent(
    interpreter: Interpreter, tracer: GilAccount, tmp_path: Path
) -> None:
    """
    Each thread's time with the GIL agrees with both clocks; holds and waits are right as well.
    """
    arguments = ["--seconds", "5", "--threads", "hog,worker,yielder"]
    answer, observation, truth = _witnessed_holds(
        command_of(interpreter), tracer, tmp_path, *arguments
    )
    (gil,) = observation.totals.gils

    assert_sound(observation)
    assert_adds_up(observation)
    for thread in thread_truths(answer):
        seen = thread_of(observation, thread.tid)
        assert thread.hold_ns > _SECOND_NS
        _assert_holds_agree(thread, seen, truth)
        _assert_waits_agree(thread, seen, truth)
    # The main thread has needed it for an instant; the rest of the time is accounted for.
    assert holds_of(gil).held_ns == pytest.approx(
        sum(hold.ns for hold in truth.finished), rel=_TOLERANCE
    )
    assert observed_ns(observation) <= observation.totals.at_ns - observation.since_ns


@pytest.mark.slow
@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_short_holds_are_right_to_one_percent(
    interpreter: Interpreter, tracer: GilAccount, tmp_path: Path
) -> None:
    """
    Some thousand holds of 0.2 ms a second are all counted, and the probes add little to them.
    """
    arguments = ["--rounds", "6000", "--threads", "quick"]
    answer, observation, truth = _witnessed_holds(
        command_of(interpreter), tracer, tmp_path, *arguments
    )
    (thread,) = thread_truths(answer)
    seen = thread_of(observation, thread.tid)

    assert_sound(observation)
    assert thread.hold_ns > _SECOND_NS
    assert thread.holds == held_by(seen).count
    _assert_holds_agree(thread, seen, truth)


@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_tens_of_thousands_of_holds_are_counted(
    interpreter: Interpreter, tracer: GilAccount
) -> None:
    """
    A thread that lets go of the GIL and takes it back at once does so exactly 20,011 times.
    """
    arguments = ["--rounds", "20011", "--threads", "busy"]
    answer, observation = _known_holds(command_of(interpreter), tracer, *arguments)
    (truth,) = thread_truths(answer)

    assert_sound(observation)
    assert_adds_up(observation)
    assert 20011 == truth.holds == held_by(thread_of(observation, truth.tid)).count


@pytest.mark.beside_others
@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_foreign_condition_variables_are_never_held(
    interpreter: Interpreter, tracer: GilAccount
) -> None:
    """
    What threads signal and wait for among themselves is not taken for a GIL.
    """
    with started(command_of(interpreter), "foreign_condvars.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            answer = workload.run()
        observation = observation_of(tracer, workload.pid)
        workload.finish()
    (gil,) = observation.totals.gils

    assert_sound(observation)
    assert answer["foreign_waits"] > 1000
    # The main thread wakes up at the end and reports.
    assert {workload.pid} >= {thread.tid for thread in observation.totals.threads}
    assert holds_of(gil).finished.count < 100
    assert 0 == holds_of(gil).switch_latency.count
    assert 0 == total(gil.waits.values()).count


def _known_holds(
    command: Sequence[str], tracer: GilAccount, *arguments: str
) -> tuple[Answer, GilObservation]:
    """Return what the threads of held_known.py know of themselves, and what has been seen."""
    with started(command, "held_known.py", *arguments) as workload:
        answer, observation = _observed(workload, tracer)
        workload.finish()
    return answer, observation


def _witnessed_holds(
    command: Sequence[str], tracer: GilAccount, folder: Path, *arguments: str
) -> tuple[Answer, GilObservation, Holds]:
    """Return the same, and what a witness knows."""
    witness = Witness(folder)
    with started(witness.command(command), "held_known.py", *arguments) as workload:
        answer, observation = _observed(workload, tracer)
        truth = witness.holds(workload.pid).since(observation.since_ns)
        workload.finish()
    return answer, observation, truth


def _observed(workload: Workload, tracer: GilAccount) -> tuple[Answer, GilObservation]:
    tracer.attach(workload.pid)
    with looked_after(tracer):
        answer = workload.run()
        workload.await_rest()
    for thread in answer["threads"]:
        _assert_accounts_for_its_time(thread)
    return answer, observation_of(tracer, workload.pid)


def _assert_accounts_for_its_time(thread: Answer) -> None:
    """Assert that what the thread says it held, waited and spent elsewhere is all the time."""
    calls_ns = thread["take"]["ns"] + thread["drop"]["ns"]
    crunched_ns = thread["seen"]["wait_ns"] if "seen" in thread else 0
    known_ns = thread["hold_ns"] + calls_ns + crunched_ns + thread["outside_ns"]
    slack = 0.2 if thread["kind"] == "busy" else _BOOKKEEPING

    assert thread["wall_ns"] * (1 - slack) <= known_ns <= thread["wall_ns"], thread["name"]


def _assert_holds_agree(thread: ThreadTruth, seen: ThreadTotals, truth: Holds) -> None:
    """Assert that *seen* has the thread's holds, each once, and their time, and no more."""
    held, holds = held_by(seen), truth.of(thread.tid)

    assert thread.holds <= len(holds) == held.count, thread.name
    assert held.ns == pytest.approx(sum(hold.ns for hold in holds), rel=_TOLERANCE), thread.name
    if thread.kernel is None:
        assert thread.hold_ns * (1 - _TOLERANCE) <= held.ns, thread.name


def _assert_waits_agree(thread: ThreadTruth, seen: ThreadTotals, truth: Holds) -> None:
    if thread.kernel is None:
        waits_ns = truth.yields_ns(thread.tid) + truth.calls_ns(thread.tid)
    else:
        waits_ns = truth.gaps_ns(thread.tid) + truth.first_wait_ns(thread.tid)

    assert len(waits_ns) == seen.waits, thread.name
    # How long each of them waits is up to chance: it may be next to nothing.
    assert seen.wait_ns == pytest.approx(sum(waits_ns), rel=_TOLERANCE, abs=_WAIT_SLACK_NS), (
        thread.name
    )


# Against a witness.


@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_every_hold_and_every_switch_is_counted(
    interpreter: Interpreter, tracer: GilAccount, tmp_path: Path
) -> None:
    """
    Of threads that hold for 0.05 to 100 ms, each hold and each switch is seen, and its length.
    """
    witness = Witness(tmp_path)
    arguments = ["--rounds", "97", "--threads", "mixed,uneven,quick,native", "--asleep"]
    with started(witness.command(command_of(interpreter)), "held_known.py", *arguments) as workload:
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
    assert {gil.gil.cond} == truth.conds
    for thread in truths:
        held, holds = held_by(thread_of(observation, thread.tid)), truth.of(thread.tid)
        assert 97 == thread.holds == len(holds) == held.count
        assert held.ns == pytest.approx(
            sum(hold.ns for hold in holds), rel=_TOLERANCE, abs=97 * _ENDS_NS
        )
    lengths_ns = [hold.ns for hold in truth.finished]
    latencies_ns = [switch.ns for switch in truth.switches]
    assert_same_lengths(lengths_ns, holds_of(gil).finished, slack_ns=_ENDS_NS)
    assert_same_lengths(latencies_ns, holds_of(gil).switch_latency, slack_ns=_ENDS_NS)
    assert len(latencies_ns) > 97
