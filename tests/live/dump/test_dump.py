"""What all threads of a process do, by `gilscope dump`."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import started
from support.commands.gilscope import eventually, gilscope
from support.commands.json_reports import assert_dump_fits_schema, frames_of
from support.held_in_c import holder_started
from support.interpreters.known import INTERPRETERS, ONE_PER_MINOR, Interpreter
from support.paths import WORKLOADS

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_HAS_OWN_GILS = (3, 12)
_DEEPEST = 1000


def _dump(pid: int) -> dict[str, Any]:
    outcome = gilscope("dump", "-p", str(pid), "--format", "json")
    assert (0, "") == (outcome.exit_code, outcome.messages)
    report: dict[str, Any] = json.loads(outcome.output)
    assert_dump_fits_schema(report)
    return report


def _thread(report: Mapping[str, Any], tid: int) -> Mapping[str, Any]:
    found: Mapping[str, Any]
    (found,) = [each for each in report["threads"] if each["tid"] == tid]
    return found


def _stack(report: Mapping[str, Any], thread: Mapping[str, Any], interpreter: int = 0) -> list[Any]:
    """Return the frames of *thread* as the workload tells them of itself."""
    numbers = [each["stack"] for each in thread["stacks"] if each["interpreter"] == interpreter]
    return [
        [frame["function"], frame["file"], frame["first_line"], frame["line"]]
        for number in numbers
        for frame in frames_of(report, number)
    ]


@contextmanager
def _started(*command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_stacks_are_those_that_the_program_sees(interpreter: Interpreter) -> None:
    """
    Of every thread that stands still, frame by frame, and in every interpreter.
    """
    with _started(
        *interpreter.command(str(WORKLOADS / "parked_threads.py")), env=interpreter.environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pid = json.loads(process.stdout.readline())["pid"]
        report = _dump(pid)
        process.stdin.write("truth\n")
        process.stdin.flush()
        truth = json.loads(process.stdout.readline())["truth"]
    parked = {each["tid"]: each["stack"] for each in truth.values() if each["tid"] != pid}

    assert len(parked) > 15
    for tid, stack in parked.items():
        thread = _thread(report, tid)
        assert stack[:_DEEPEST] == _stack(report, thread)
        # It waits in a read of a pipe, without the GIL.
        assert ("S", "read") == (thread["state"], thread["call"])
        assert re.fullmatch(r"read on fd \d+ = pipe:\[\d+\]", thread["does"])
    inside = [each for each in report["threads"] if len(each["stacks"]) > 1]
    names = [frame[0] for each in inside for frame in _stack(report, each, 1)]
    assert ["inside", "<module>"] == names
    assert (2 if interpreter.minor >= _HAS_OWN_GILS else 1) == len(report["gils"])
    assert [(False, None, [])] * len(report["gils"]) == [
        (gil["held"], gil["holder"], gil["waiting"]) for gil in report["gils"]
    ]


@pytest.mark.parametrize("interpreter", ONE_PER_MINOR)
def test_a_deadlock_of_the_gil_and_a_mutex(interpreter: Interpreter) -> None:
    """
    Both sides by thread and line, and the owner of the mutex; the same is said again and again.
    """
    with started(interpreter.argv, "abba.py") as workload:
        main, keeper = workload.ready["main"], workload.ready["keeper"]
        workload.command("go")
        report = eventually(lambda: _deadlocked(_dump(workload.pid)))
        again = [_dump(workload.pid) for _ in range(3)]
        text = gilscope("dump", "-p", str(workload.pid)).output
        os.kill(workload.pid, 9)
    (circle,) = report["deadlocks"]
    keep, want = "keep (abba.py:44)", "want (abba.py:49)"

    assert [(main, "lock"), (keeper, "gil")] == [
        (each["tid"], each["waits_for"]) for each in circle
    ]
    assert keeper == _thread(report, main)["lock"]["owner"]
    assert [[circle]] * 3 == [each["deadlocks"] for each in again]
    assert (
        f"Deadlock: thread {main} (MainThread, at {want}) holds the GIL and waits for a native "
        f"lock that thread {keeper} (keep (abba.py:41), at {keep}) holds; thread {keeper} waits "
        "for the GIL.\n"
    ) in text


def _deadlocked(report: dict[str, Any]) -> dict[str, Any]:
    return report if report["deadlocks"] else {}


def test_who_keeps_the_gil_in_a_call() -> None:
    """
    The holder, the file that it reads, and who waits for it; no deadlock.
    """
    with holder_started() as process:
        process.holds()
        report = eventually(lambda: _waited_for(_dump(process.pid)))
    (gil,) = report["gils"]
    holder = _thread(report, process.pid)

    assert (process.pid, []) == (gil["holder"], report["deadlocks"])
    assert re.fullmatch(r"read on fd 0 = pipe:\[\d+\]", holder["does"])
    assert "hold" == _stack(report, holder)[0][0]
    (waiter,) = gil["waiting"]
    assert ("gil", "S") == (_thread(report, waiter)["waits_for"], _thread(report, waiter)["state"])
    assert _thread(report, waiter)["role"].startswith("wait (held_in_c.py:")


def _waited_for(report: dict[str, Any]) -> dict[str, Any]:
    (gil,) = report["gils"]
    return report if gil["held"] and gil["waiting"] else {}


def test_a_file_instead_of_the_terminal(tmp_path: Path) -> None:
    """
    Its name says the form.
    """
    with holder_started() as process:
        process.holds()
        for name in ("dump.json", "dump.txt"):
            outcome = gilscope("dump", "-p", str(process.pid), "-o", str(tmp_path / name))
            assert (0, "", "") == (outcome.exit_code, outcome.output, outcome.messages)

    assert_dump_fits_schema(json.loads((tmp_path / "dump.json").read_text()))
    assert (tmp_path / "dump.txt").read_text().startswith("held_in_c.py, pid ")


def test_what_is_no_python() -> None:
    """
    It is refused as by every other command.
    """
    with _started("cat") as process:
        outcome = gilscope("dump", "-p", str(process.pid))

    assert 3 == outcome.exit_code
    assert outcome.messages.startswith(f"error: process {process.pid} (cat) does not map a Python")
