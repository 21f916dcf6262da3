"""Probes that vanish from the code of a process: noticed before anything wrong is told."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from accuracy.truth import Workload, started
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.model.gil import GilObservation
from gilscope.model.kinds import Mode
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually
from support.interpreters.builds import build
from support.interpreters.known import Interpreter
from support.tracing.observations import waits_of
from support.tracing.target_text import BREAKPOINT, text_of
from support.tracing.trace import command_of, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


@pytest.fixture(params=["debian-3.11", "pyenv-3.12"], ids=["static", "shared"])
def interpreter(request: pytest.FixtureRequest) -> Interpreter:
    """One with its code in the executable, one in a library."""
    return build(request.param)


def _changes(workload: Workload, how: str) -> None:
    workload.command(how)
    workload.answer()


def _is_counted(seen: GilObservation, waits: int) -> bool:
    return bool(seen.invalid) or waits_of(seen) > waits


@pytest.mark.parametrize("how", ["drop", "overwrite"])
@pytest.mark.parametrize("mode", [Mode.CONTENTION, Mode.FULL])
def test_probes_that_have_gone_are_put_in_once_more(
    how: str, mode: Mode, interpreter: Interpreter, probe: GilProbe, tmp_path: Path
) -> None:
    """
    The figures begin anew, the loss is counted, and what is told then is right.
    """
    tracer = GilAccount(probe, SiteCache(tmp_path), plan=ObservationPlan(mode))
    with started(command_of(interpreter), "code_changer.py") as workload:
        target = tracer.attach(workload.pid)
        eventually(lambda: waits_of(observation_of(tracer, workload.pid)) > 3)
        before = observation_of(tracer, workload.pid)
        _changes(workload, how)
        assert BREAKPOINT != text_of(target)
        renewed = observation_of(tracer, workload.pid)
        assert BREAKPOINT == text_of(target)
        eventually(lambda: waits_of(observation_of(tracer, workload.pid)) > 3)
        after = observation_of(tracer, workload.pid)
        tracer.close()

    assert ["", "", ""] == [seen.invalid for seen in (before, renewed, after)]
    assert renewed.since_ns > before.totals.at_ns
    lost = [seen.totals.lost_events.get("probes_gone", 0) for seen in (before, renewed, after)]
    assert [0, 1, 1] == lost
    # No thread seems to have waited since its last wait was seen.
    for seen in (renewed, after):
        lasted_ns = seen.totals.at_ns - seen.since_ns
        assert all(thread.wait_ns <= lasted_ns for thread in seen.totals.threads)


def test_probes_that_go_again_are_not_believed_any_more(
    interpreter: Interpreter, probe: GilProbe, tmp_path: Path
) -> None:
    """
    A program that writes over its code all the time is named, and shows nothing.
    """
    tracer = GilAccount(probe, SiteCache(tmp_path), method="sites")
    with started(command_of(interpreter), "code_changer.py") as workload:
        target = tracer.attach(workload.pid)
        _changes(workload, "overwrite")
        assert "" == observation_of(tracer, workload.pid).invalid
        _changes(workload, "overwrite")
        seen = observation_of(tracer, workload.pid)
        assert BREAKPOINT != text_of(target)
        tracer.close()

    assert "its probes have gone again: something writes over its code" == seen.invalid
    assert ((), ()) == (seen.totals.threads, seen.totals.gils)


def test_probes_that_go_with_their_keeper_are_not_put_down_to_the_process(
    probe: GilProbe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    Even where the keeper ends while the tracer looks, as it does while the agent is stopped.
    """
    begin = AttachedProcess.breakpoint_check

    def end_keeper_first(traced: AttachedProcess) -> Callable[[], int | None]:
        monkeypatch.setattr(AttachedProcess, "breakpoint_check", begin)
        check = begin(traced)
        assert probe.keeper_pid is not None
        os.kill(probe.keeper_pid, signal.SIGKILL)
        return lambda: eventually(check)

    tracer = GilAccount(probe, SiteCache(tmp_path))
    with started(command_of(build("debian-3.11")), "code_changer.py") as workload:
        tracer.attach(workload.pid)
        for _ in range(2):
            monkeypatch.setattr(AttachedProcess, "breakpoint_check", end_keeper_first)
            assert "" == observation_of(tracer, workload.pid).invalid
        tracer.close()

    assert 2 == caplog.text.count("the process that holds them has ended")
    assert "its code was written to" not in caplog.text


def test_a_process_without_its_main_thread_is_not_believed(probe: GilProbe, tmp_path: Path) -> None:
    """
    The kernel knows a process by its main thread: it takes the probes out when it next has to look.
    """
    tracer = GilAccount(probe, SiteCache(tmp_path), method="sites")
    command = command_of(build("debian-3.11"))
    with started(command, "code_changer.py") as workload:
        target = tracer.attach(workload.pid)
        workload.command("leave")
        workload.answer()
        task = Path(f"/proc/{workload.pid}/task/{workload.pid}/status")
        eventually(lambda: "State:\tZ" in task.read_text())
        waits = waits_of(observation_of(tracer, workload.pid))
        # Until then it is counted, unless somebody else's probes have had the kernel look already.
        eventually(lambda: _is_counted(observation_of(tracer, workload.pid), waits))
        with started(command, "code_changer.py") as other:
            tracer.attach(other.pid)
            tracer.drop(other.pid)
        eventually(lambda: observation_of(tracer, workload.pid).invalid)
        seen = observation_of(tracer, workload.pid)
        tracer.close()
        os.kill(workload.pid, signal.SIGKILL)

    assert target.build.pid == seen.process.pid
    assert seen.invalid.startswith("its probes have gone, and were refused: ")
    assert ((), ()) == (seen.totals.threads, seen.totals.gils)
