"""``gilscope record``: its reports, its exit codes, and what it does with a command of its own."""

import json
import os
import signal
import stat
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import exact_counts, started
from gilscope.histogram import BOUNDS_NS
from interpreters import Interpreter, find_interpreter
from live.gilscope_command import eventually, gilscope, gilscope_started

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3"
_WORKLOADS = Path(__file__).parents[1] / "workloads"
_EXACT_COUNT = str(_WORKLOADS / "exact_count.py")
_SHORT_LIVED = str(_WORKLOADS / "short_lived.py")
_TRACING = "Tracing the GIL of"
# One static build and one whose GIL is in a library that the loader has yet to map.
_BUILDS = ("debian-3.11", "pyenv-3.8", "pyenv-3.13")

_OWN_PID = str(os.getpid())

_NOT_MEASURED = {"hold_s", "holds"}
_KEYS = {
    "": {
        *("version", "mode", "duration_s", "process", "totals", "histograms", "threads"),
        *("interpreters", "edges"),
    },
    "process": {
        *("pid", "name", "python", "build_id", "gil", "method", "valid", "invalid_reason"),
    },
    "totals": {
        *("wait_s", "waits", "forced_switches", "drop_requests", "convoy_waits", "lost_events"),
        *_NOT_MEASURED,
    },
    "histograms": {"wait", "hold", "switch_latency", "drop_latency"},
    "threads": {"tid", "role", "wait_s", "waits", "forced_switches", "kinds", *_NOT_MEASURED},
    "interpreters": {
        *("id", "switch_interval_s", "waits", "convoy_waits", "forced_switches"),
        "drop_requests",
    },
}


def _interpreter(name: str) -> Interpreter:
    return find_interpreter(name)


def _assert_consistent(report: Mapping[str, Any]) -> None:
    totals, threads, interpreters = (report[key] for key in ("totals", "threads", "interpreters"))
    for key in ("waits", "forced_switches"):
        assert totals[key] == sum(thread[key] for thread in threads)
    for key in ("convoy_waits", "forced_switches", "drop_requests"):
        assert totals[key] == sum(one[key] for one in interpreters)
    causes = [cause for one in interpreters for cause in one["waits"].values()]
    kinds = [kind for thread in threads for kind in thread["kinds"].values()]
    assert totals["waits"] == sum(cause["waits"] for cause in causes)
    assert totals["waits"] == sum(kind["waits"] for kind in kinds)
    assert totals["waits"] == sum(count for _, count in report["histograms"]["wait"])
    for parts in (threads, causes, kinds):
        assert totals["wait_s"] == pytest.approx(sum(part["wait_s"] for part in parts), abs=1e-6)


def test_json_has_the_keys_of_its_version_and_no_others() -> None:
    """
    Every object of the report has exactly the documented keys; what is not measured is null.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        gilscope_started("record", "-p", str(workload.pid), "--format", "json") as command,
    ):
        command.says(_TRACING)
        workload.run()
        command.send(signal.SIGINT)
        report = json.loads(command.outcome().output)

    assert 1 == report["version"]
    assert "contention" == report["mode"]
    assert [] == report["edges"]
    for name, keys in _KEYS.items():
        part = report[name] if name else report
        for one in part if isinstance(part, list) else [part]:
            assert keys == set(one), name
    for part in (report["totals"], *report["threads"]):
        assert {None} == {part[key] for key in _NOT_MEASURED}
    assert None is report["histograms"]["hold"]
    assert None is report["histograms"]["switch_latency"]
    bounds = [*(bound / 1e9 for bound in BOUNDS_NS), None]
    for name in ("wait", "drop_latency"):
        assert bounds == [bound for bound, _ in report["histograms"][name]]


def test_json_tells_the_known_answer_and_adds_up() -> None:
    """
    Threads, interpreters and histograms agree with the workload and with the totals.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        gilscope_started("record", "-p", str(workload.pid), "--format", "json") as command,
    ):
        command.says(_TRACING)
        truth = exact_counts(workload.run())
        command.send(signal.SIGINT)
        outcome = command.outcome()
    report = json.loads(outcome.output)
    (waiter,) = [thread for thread in report["threads"] if thread["tid"] == truth.waiter.tid]

    assert 0 == outcome.exit_code
    assert 23 == waiter["waits"]
    assert waiter["wait_s"] == pytest.approx(truth.waiter.total.wait_ns / 1e9, rel=0.02)
    assert truth.waiter.role == waiter["role"].replace("tests/workloads/", "")
    assert 0 == waiter["forced_switches"]
    assert truth.waiter.convoy_waits == waiter["kinds"]["GIL_CONVOY"]["waits"]
    assert {} == report["totals"]["lost_events"]
    (interpreter,) = report["interpreters"]
    assert (0, 0.005) == (interpreter["id"], interpreter["switch_interval_s"])
    assert truth.drop_requests == sum(n for _, n in report["histograms"]["drop_latency"])
    process = dict(report["process"])
    process.pop("build_id")
    assert {
        "pid": workload.pid,
        "name": "exact_count.py",
        "python": "3.11.2",
        "gil": True,
        "method": "sites",
        "valid": True,
        "invalid_reason": None,
    } == process
    _assert_consistent(report)


def test_text_tells_the_known_answer() -> None:
    """
    The text names the waiting role with the number of its waits of each kind.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        gilscope_started("record", "-p", str(workload.pid)) as command,
    ):
        command.says(_TRACING)
        truth = exact_counts(workload.run())
        command.send(signal.SIGINT)
        outcome = command.outcome()
    lines = outcome.output.splitlines()
    convoys = truth.waiter.convoy_waits
    (convoy,) = [line for line in lines if f"({convoys}x GIL_CONVOY)" in line]

    assert f"exact_count.py, pid {workload.pid}, CPython 3.11.2" == lines[0]
    assert "waiter (" in lines[lines.index(convoy) + 1]
    assert 1 == sum(f"({23 - convoys}x GIL_BLOCKING_CALL)" in line for line in lines)
    assert "No event was lost." == lines[-1]


def test_ctrl_c_ends_with_a_report_and_leaves_the_process_alone() -> None:
    """
    After SIGINT the report of what was seen comes, the exit code is 0, and the target runs on.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        gilscope_started("record", "-p", str(workload.pid)) as command,
    ):
        command.says(_TRACING)
        command.send(signal.SIGINT)
        outcome = command.outcome()
        workload.run()

        assert 0 == workload.finish()
    assert 0 == outcome.exit_code
    assert "No thread had to wait for the GIL." in outcome.output
    assert "until the process ended" not in outcome.output
    assert 1 == len(outcome.messages.splitlines())


def test_recording_ends_after_its_duration() -> None:
    """
    With -d the recording lasts for so long, to a few ticks of the clock.
    """
    with started([_PYTHON], "exact_count.py") as workload:
        outcome = gilscope("record", "-p", str(workload.pid), "-d", "0.25", "--format", "json")

    assert 0 == outcome.exit_code
    assert 0.25 <= json.loads(outcome.output)["duration_s"] < 1.0


def test_process_that_ends_is_reported() -> None:
    """
    The end of the target ends the recording, with all that was counted until then.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        gilscope_started("record", "-p", str(workload.pid)) as command,
    ):
        command.says(_TRACING)
        workload.run()
        workload.finish()
        outcome = command.outcome()

    assert 0 == outcome.exit_code
    assert "until the process ended" in outcome.output.splitlines()[1]
    assert "waiter (" in outcome.output


def test_process_that_becomes_another_program_is_reported() -> None:
    """
    An exec of the target ends the recording; the new program is neither harmed nor counted.
    """
    with (
        started([_PYTHON], "execer.py") as workload,
        gilscope_started("record", "-p", str(workload.pid), "--format", "json") as command,
    ):
        command.says(_TRACING)
        truth = workload.run()["threads"]
        outcome = command.outcome()
        second = workload.answer()
        result = workload.run()

        assert 0 == workload.finish()
    report = json.loads(outcome.output)

    assert (True, 2, workload.pid) == (second["ready"], second["stage"], second["pid"])
    assert 2 == result["stage"]
    assert 0 == outcome.exit_code
    assert {thread["tid"] for thread in truth} <= {thread["tid"] for thread in report["threads"]}
    assert {"MainThread"} == {
        thread["role"] for thread in report["threads"] if thread["tid"] == workload.pid
    }
    _assert_consistent(report)


@pytest.mark.parametrize("build", _BUILDS)
def test_command_is_traced_from_its_first_wait(build: str) -> None:
    """
    A command that contends as soon as it can has all of its 23 waits counted.
    """
    python = _interpreter(build).argv
    outcome = gilscope("record", "--format", "json", "--", *python, _EXACT_COUNT, typed="\n")
    _, answer, text = outcome.output.split("\n", 2)
    truth, report = exact_counts(json.loads(answer)), json.loads(text)
    (waiter,) = [thread for thread in report["threads"] if thread["tid"] == truth.waiter.tid]

    assert 0 == outcome.exit_code
    assert 23 == waiter["waits"]
    assert {} == report["totals"]["lost_events"]
    _assert_consistent(report)


_AT_ONCE = """\
import _thread, os, sys
done = _thread.allocate_lock()
done.acquire()
def crunch(rounds):
    for _ in range(rounds):
        sum(range(1000))
    done.release()
_thread.start_new_thread(crunch, (2000,))
for _ in range(2000):
    sum(range(1000))
done.acquire()
os._exit(0)
"""


@pytest.mark.parametrize("build", _BUILDS)
def test_program_that_ends_before_anybody_looks_is_counted_whole(build: str) -> None:
    """
    A program that fights and ends while the agent sleeps is in the threads and the histograms.
    """
    python = _interpreter(build).argv
    arguments = ("record", "--format", "json", "--", *python, "-S", "-c", "input();" + _exec())
    with gilscope_started(*arguments) as command:
        command.says(_TRACING)
        command.send(signal.SIGSTOP)
        (child,) = eventually(lambda: _children(command.pid))
        assert command.process.stdin is not None
        command.process.stdin.write("\n")
        command.process.stdin.flush()
        eventually(lambda: _state(child) == "Z")
        command.send(signal.SIGCONT)
        outcome = command.outcome()
    report = json.loads(outcome.output)

    assert 0 == outcome.exit_code
    assert report["totals"]["waits"] > 0
    assert [0] == [interpreter["id"] for interpreter in report["interpreters"]]
    _assert_consistent(report)


def _exec() -> str:
    return f"exec({_AT_ONCE!r})"


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("build", _BUILDS)
def test_exit_code_of_the_command_is_passed_on(build: str) -> None:
    """
    The command's own exit code is that of the recording, whose report comes all the same.
    """
    outcome = gilscope("record", "--", *_interpreter(build).argv, _SHORT_LIVED, typed="\n")

    assert 7 == outcome.exit_code
    assert "Fight._fighter (" in outcome.output or "_fighter (" in outcome.output
    assert "until the process ended" in outcome.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_signal_that_ends_the_command_is_passed_on(number: signal.Signals) -> None:
    """
    A command that a signal ends gives 128 and the signal's number, as in a shell.
    """
    code = f"import os; os.kill(os.getpid(), {int(number)})"
    outcome = gilscope("record", "--", _PYTHON, "-c", code)

    assert 128 + number == outcome.exit_code
    assert "No thread had to wait for the GIL." in outcome.output


@pytest.mark.parametrize("build", ["debian-3.11", "pyenv-3.13"])
def test_shell_that_becomes_python_is_followed(build: str) -> None:
    """
    ``sh -c 'exec python …'`` is traced as that Python, from exec to exec.
    """
    (python,) = _interpreter(build).argv
    outcome = gilscope(
        *("record", "--", "sh", "-c", 'exec env "$0" "$@"', python, _SHORT_LIVED), typed="\n"
    )

    assert 7 == outcome.exit_code
    assert "short_lived.py, pid " in outcome.output
    assert "until the process ended" in outcome.output


def test_version_manager_is_followed(tmp_path: Path) -> None:
    """
    A wrapper script that runs programs of its own before it becomes Python is no obstacle.
    """
    (python,) = _interpreter("pyenv-3.13").argv
    shim = tmp_path / "python"
    shim.write_text(
        f'#!/usr/bin/env bash\nset -e\nversion="$(sh -c "echo 3; kill -WINCH $$")"\n'
        f'[ "$version" = 3 ]\nexec "{python}" "$@"\n'
    )
    shim.chmod(shim.stat().st_mode | stat.S_IXUSR)

    outcome = gilscope("record", "--", str(shim), _SHORT_LIVED, typed="\n")

    assert 7 == outcome.exit_code
    assert "short_lived.py, pid " in outcome.output


def test_command_that_is_not_python_runs_to_its_end_first() -> None:
    """
    A command without Python does its work; only then the message and exit code 3 come.
    """
    outcome = gilscope("record", "--", "sh", "-c", "read line; echo $line; exit 5", typed="x\n")

    assert (3, "x\n") == (outcome.exit_code, outcome.output)
    assert outcome.messages.startswith("error: the command ended without having run Python")


def test_python_in_a_child_of_the_command_is_not_mistaken_for_it() -> None:
    """
    A shell that starts Python as its child is not Python; the message says what to do.
    """
    outcome = gilscope("record", "--", "sh", "-c", f"{_PYTHON} -c 'print(1)'; exit 5")

    assert (3, "1\n") == (outcome.exit_code, outcome.output)
    assert "not into its children" in outcome.messages
    assert "-p PID" in outcome.messages


def test_command_that_does_not_exist() -> None:
    """
    A command that cannot be found gives 127 and says so, as in a shell.
    """
    outcome = gilscope("record", "--", "no-such-command-anywhere")

    assert (127, "") == (outcome.exit_code, outcome.output)
    assert (
        "error: cannot start no-such-command-anywhere: No such file or directory\n"
        == outcome.messages
    )


def test_command_that_may_not_be_executed(tmp_path: Path) -> None:
    """
    A file that is not executable gives 126, as in a shell.
    """
    script = tmp_path / "script"
    script.touch()
    outcome = gilscope("record", "--", str(script))

    assert (126, "") == (outcome.exit_code, outcome.output)
    assert f"error: cannot start {script}: Permission denied\n" == outcome.messages


def test_ctrl_c_reaches_the_command_and_its_report_comes() -> None:
    """
    Ctrl-C in a terminal goes to both; the command ends in its own way, and is reported.
    """
    arguments = ("record", "--", _PYTHON, str(_WORKLOADS / "convoy.py"))
    with gilscope_started(*arguments) as command:
        command.says(_TRACING)
        eventually(lambda: '"ready": true' in command.output)
        command.interrupt()
        outcome = command.outcome()

    assert 0 == outcome.exit_code
    assert "convoy.py, pid " in outcome.output
    assert "crunch (" in outcome.output


def test_duration_ends_the_command() -> None:
    """
    When the time of -d is over, the command is asked to end, and its exit code is passed on.
    """
    convoy = str(_WORKLOADS / "convoy.py")
    outcome = gilscope("record", "-d", "0.5", "--", _PYTHON, convoy)

    assert 0 == outcome.exit_code
    assert "crunch (" in outcome.output
    assert outcome.messages.endswith("done\n")


def test_report_goes_to_the_file_and_the_command_keeps_its_output(tmp_path: Path) -> None:
    """
    With -o nothing of gilscope's is on standard output: that belongs to the command.
    """
    report = tmp_path / "report.json"
    outcome = gilscope(
        *("record", "--format", "json", "-o", str(report)),
        *("--", _PYTHON, "-c", "import sys; print(1); print(2, file=sys.stderr)"),
    )

    assert (0, "1\n") == (outcome.exit_code, outcome.output)
    assert "2" in outcome.messages.splitlines()
    assert 2 == len(outcome.messages.splitlines())
    _assert_consistent(json.loads(report.read_text()))


def test_report_can_be_printed_in_any_locale() -> None:
    """
    A terminal or pipe that knows ASCII only gets the report with substitutes, not a traceback.
    """
    outcome = gilscope(
        *("record", "--", _PYTHON, _SHORT_LIVED), typed="\n", extra={"PYTHONIOENCODING": "ascii"}
    )

    assert 7 == outcome.exit_code
    assert "How long the waits lasted" in outcome.output


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-p", _OWN_PID, "--", "true"],
        ["-p", "one"],
        ["-p", _OWN_PID, "-d", "nan"],
        ["-p", _OWN_PID, "-d", "inf"],
        ["-p", _OWN_PID, "-d", "-1"],
        ["-p", _OWN_PID, "-d", "0"],
        ["-p", _OWN_PID, "--format", "xml"],
        ["-p", _OWN_PID, "-o", "/nonexistent/report"],
        ["-p", _OWN_PID, "-o", "/"],
    ],
)
def test_usage_errors(arguments: list[str]) -> None:
    """
    What cannot be meant is refused with exit code 2 and a reason, before anything is traced.
    """
    outcome = gilscope("record", *arguments)

    assert (2, "") == (outcome.exit_code, outcome.output)
    assert "error: " in outcome.messages
    assert "Traceback" not in outcome.messages


def test_no_such_process() -> None:
    """
    A pid that nobody has gives exit code 3 and is named.
    """
    with subprocess.Popen([_PYTHON, "-c", ""]) as gone:
        pass
    outcome = gilscope("record", "-p", str(gone.pid))

    assert (3, "") == (outcome.exit_code, outcome.output)
    assert f"error: there is no process {gone.pid}" == outcome.messages.splitlines()[0]


def test_thread_id_is_not_a_process() -> None:
    """
    The id of a thread gives exit code 3 and the id of the process to name instead.
    """
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        outcome = gilscope("record", "-p", str(thread.native_id), "-d", "0.1")
    finally:
        ended.set()
        thread.join()

    assert (3, "") == (outcome.exit_code, outcome.output)
    assert (
        f"error: {thread.native_id} is a thread of process {os.getpid()}, not a process"
        == outcome.messages.splitlines()[0]
    )
    assert f"-p {os.getpid()}" in outcome.messages.splitlines()[1]


def test_process_that_is_not_python() -> None:
    """
    A process without an interpreter gives exit code 3 and is named with its program.
    """
    with subprocess.Popen(["sleep", "60"]) as process:
        eventually(lambda: _program(process.pid) == "sleep")
        outcome = gilscope("record", "-p", str(process.pid))
        process.kill()

    assert (3, "") == (outcome.exit_code, outcome.output)
    assert (
        f"error: process {process.pid} (sleep) does not map a Python interpreter"
        == outcome.messages.splitlines()[0]
    )


def _program(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_reader_that_goes_away_is_no_failure() -> None:
    """
    Output into a pipe that nobody reads any more ends without a traceback.
    """
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as closed, started([_PYTHON], "exact_count.py") as workload:
        arguments = ["record", "-p", str(workload.pid), "-d", "0.1"]
        with gilscope_started(*arguments, stdout=closed) as command:
            outcome = command.outcome()

    assert 0 == outcome.exit_code
    assert 1 == len(outcome.messages.splitlines())
