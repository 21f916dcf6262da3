"""Records a program whose threads wait for locks, and reads what it knows of them itself."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import Workload, spoken_to
from support.commands.gilscope import gilscope_started
from support.interpreters.interpreter import Interpreter
from support.paths import WORKLOADS
from support.tracing.trace import command_of

__all__ = ["clocked", "of_thread", "recorded_locks", "sleep_clock", "waits_in", "waits_started"]

_S = "1.8"
_TIMED = {"hold", "store"}
"""Functions that time what they wait for."""


@pytest.fixture(scope="session")
def sleep_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that reads the truth."""
    built = tmp_path_factory.mktemp("clock") / "clock.so"
    source = WORKLOADS / "sleep_clock.c"
    # Without a C library of its own it runs with any.
    command = [
        "gcc",
        "-O2",
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-fno-stack-protector",
        "-o",
        str(built),
        str(source),
    ]
    subprocess.run(command, check=True)
    return built


@contextmanager
def waits_started(
    interpreter: Interpreter,
    clock: Path,
    kind: str,
    *,
    seconds: str = _S,
    before: Sequence[str] = (),
) -> Iterator[Workload]:
    """Run lock_waits.py of one *kind* with its *clock*, a `sleep_clock`; *before* starts it."""
    script = [str(WORKLOADS / "lock_waits.py"), kind, seconds]
    with spoken_to([*before, *clocked(interpreter, clock), *script]) as workload:
        yield workload


def clocked(interpreter: Interpreter, clock: Path) -> list[str]:
    """Return the command that runs *interpreter* with its *clock*, a `sleep_clock`."""
    command = command_of(interpreter)
    if "--preload" in command:
        # What the loader is told by an option comes instead of what is in its environment.
        at = command.index("--preload") + 1
        command[at] = f"{command[at]}:{clock}"
        settings = [f"SLEEP_CLOCK={clock}"]
    else:
        settings = [f"LD_PRELOAD={clock}", f"SLEEP_CLOCK={clock}"]
    return ["env", *settings, *command]


def recorded_locks(
    workload: Workload, tmp_path: Path, budget: str = "100%"
) -> tuple[Mapping[str, Any], dict[str, Any], str]:
    """Return what the workload knows of its threads, what gilscope does, and its text report."""
    file = tmp_path / "report.json"
    arguments = ("--locks", "--overhead-budget", budget, f"--format=json={file}", "--format=text")
    with gilscope_started("record", "-p", str(workload.pid), *arguments) as recording:
        recording.says("Tracing ")
        truth = workload.run()
        workload.finish()
        outcome = recording.outcome()
    assert 0 == outcome.exit_code, outcome.messages
    (report,) = json.loads(file.read_text())["locks"]
    return truth, report, outcome.output


def of_thread(report: Mapping[str, Any], tid: str) -> dict[str, float]:
    """Return the sums of one thread: sleeps of all kinds, and waits in the functions with clocks.

    A thread may wait for more than what it times: for the lock of the event that lets it begin.
    """
    waits = [
        wait
        for thread in report["threads"]
        for wait in thread["waits"]
        if thread["tid"] == int(tid)
    ]
    timed = [wait for wait in waits if wait["frames"] and wait["frames"][0]["function"] in _TIMED]
    return {
        "wait_s": sum(wait["wait_s"] for wait in timed),
        **{key: sum(wait[key] for wait in waits) for key in ("slept_s", "sleeps")},
    }


def waits_in(report: Mapping[str, Any], function: str) -> int:
    """Return how many waits were seen at one function."""
    return sum(
        wait["waits"]
        for thread in report["threads"]
        for wait in thread["waits"]
        if wait["frames"] and wait["frames"][0]["function"] == function
    )
