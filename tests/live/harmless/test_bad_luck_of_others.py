"""What happens when a PyPy or a CPython 2.7 forks, executes another program, or is killed."""

import json
import os
import signal
from collections.abc import Callable

import pytest

from accuracy.truth import started
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.histogram import total
from support.commands.gilscope import eventually
from support.interpreters.known import CPYTHON_27, PYPYS, Interpreter
from support.paths import WORKLOADS
from support.tracing.bpf_tables import held_of, threads_held_of
from support.tracing.observations import waits_of
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = pytest.mark.live

_SCRIPT = "any_luck.py"
_ENOUGH = 20
_LONG_NS = 100_000_000
others = pytest.mark.parametrize("interpreter", [CPYTHON_27[0], PYPYS[-1]])


@others
def test_fork_is_unharmed_and_not_counted(interpreter: Interpreter, tracer: GilAccount) -> None:
    """
    A child that contends at the same addresses adds nothing to its parent's numbers.
    """
    with started(command_of(interpreter), _SCRIPT) as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.command("contend")
            own = workload.answer()["tids"]
            eventually(lambda: waits_of(observation_of(tracer, workload.pid)) > _ENOUGH)
            workload.command("fork")
            child = workload.answer()
            before = waits_of(observation_of(tracer, workload.pid))
            eventually(lambda: waits_of(observation_of(tracer, workload.pid)) > before + _ENOUGH)
        observation = observation_of(tracer, workload.pid)
        workload.command()
        assert 0 == workload.finish()
    counted = {thread.tid for thread in observation.totals.threads}

    assert len(child["tids"]) == len(own) == 3
    assert counted <= set(own)
    assert {} == held_of(tracer.probe, child["child"])
    assert ("", {}) == (observation.invalid, missed_events(observation))


@others
def test_exec_drops_everything_of_the_first_program(
    interpreter: Interpreter, tracer: GilAccount
) -> None:
    """
    From the exec on, nothing of the new program gets into the tables, though it is the same file.
    """
    again = [*command_of(interpreter), str(WORKLOADS / _SCRIPT)]
    with started(command_of(interpreter), _SCRIPT) as workload:
        tracer.attach(workload.pid)
        workload.command("contend")
        workload.answer()
        eventually(lambda: waits_of(observation_of(tracer, workload.pid)) > _ENOUGH)
        workload.command(f"exec {json.dumps(again)}")
        assert workload.pid == workload.answer()["pid"]
        after_exec = tracer.probe.read({}).processes[workload.pid]
        workload.command("contend")
        workload.answer()

        assert after_exec == tracer.probe.read({}).processes[workload.pid]
        assert [workload.pid] == tracer.tick()
        assert [(workload.pid, True)] == [
            (seen.process.pid, seen.ended) for seen in tracer.observe()
        ]
        workload.command()
        workload.command()
        assert 0 == workload.finish()


@others
def test_wait_that_never_ends_is_abandoned(interpreter: Interpreter, tracer: GilAccount) -> None:
    """
    A target killed while a thread waits: that wait is counted to the end, and called abandoned.
    """
    with started(command_of(interpreter), _SCRIPT) as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.command("hold")
            assert workload.answer()["holds"]
            eventually(lambda: _is_waiting_long(tracer, workload.pid, workload.command))
            os.kill(workload.pid, signal.SIGKILL)
            eventually(lambda: not tracer.pids)
        observation = observation_of(tracer, workload.pid)
    threads, (gil,) = observation.totals.threads, observation.totals.gils

    assert observation.ended
    assert "" == observation.invalid
    assert {"abandoned": 1} == missed_events(observation)
    (waiter,) = [thread for thread in threads if thread.tid == workload.pid]
    assert 0 == waiter.waiting_ns
    assert _LONG_NS < waiter.wait_ns
    assert waits_of(observation) == total(gil.waits.values()).count
    assert sum(thread.wait_ns for thread in threads) == total(gil.waits.values()).sum_ns
    assert set() == threads_held_of(tracer.probe, workload.pid)


def _is_waiting_long(tracer: GilAccount, pid: int, command: Callable[[], None]) -> bool:
    threads = observation_of(tracer, pid).totals.threads
    waiting_ns = [thread.waiting_ns for thread in threads if thread.tid == pid]
    if not any(waiting_ns):
        # What it has read before the holder began it did not have to wait for.
        command()
    return any(each > _LONG_NS for each in waiting_ns)
