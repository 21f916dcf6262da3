"""A server that others have written, without a GIL: what its threads sleep for, by a clock."""

import json
from pathlib import Path

import pytest

from accuracy.truth import spoken_to
from support.commands.gilscope import gilscope_started
from support.interpreters.known import FREE_THREADED, Interpreter
from support.paths import WORKLOADS
from support.ports import free_port
from support.real.clients import busy_clients
from support.real.environment import environment
from support.tracing.lock_waits import clocked, of_thread, sleep_clock

__all__ = ["sleep_clock"]

pytestmark = [pytest.mark.live, pytest.mark.beside_others, pytest.mark.slow]

_ANSWERS = 1000
_LEAST_NS = 3e9
"""Of the time that three threads sleep while one of them has the lock for two seconds in all."""


@pytest.mark.parametrize("interpreter", FREE_THREADED[:1])
def test_event_loops_in_threads_are_counted_by_their_sleeps(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Three of uvicorn's, whose requests share a log, a lock and a dict.
    """
    port, file = free_port(), tmp_path / "report.json"
    (packages,) = environment("requirements.txt").parent.glob("lib/python3*/site-packages")
    script = [str(WORKLOADS / "loops_in_threads.py"), str(port)]
    command = ["env", f"PYTHONPATH={packages}", *clocked(interpreter, sleep_clock), *script]
    forms = ("--locks", "--overhead-budget", "100%", f"--format=json={file}", "--format=text")
    with (
        spoken_to(command) as workload,
        gilscope_started("record", "-p", str(workload.pid), *forms) as recording,
    ):
        recording.says("Tracing ")
        workload.command()
        with busy_clients(port):
            workload.answer()
        workload.command()
        truth = workload.answer()
        workload.finish()
        outcome = recording.outcome()
    assert 0 == outcome.exit_code, outcome.messages
    (report,) = json.loads(file.read_text())["locks"]

    assert truth["answers"] >= _ANSWERS
    # Nothing but where a thread stood that has begun just now.
    assert set(report["lost_events"]) <= {"stack_unknown"}
    for tid, known in truth["threads"].items():
        seen = of_thread(report, tid)
        assert known["sleeps"] == seen["sleeps"]
        assert known["slept_ns"] / 1e9 == pytest.approx(seen["slept_s"], rel=0.01)
    assert sum(known["slept_ns"] for known in truth["threads"].values()) > _LEAST_NS
    kinds = {wait["kind"] for thread in report["threads"] for wait in thread["waits"]}
    assert "lock" in kinds
