"""``gilscope record`` of a process with its children, and of all that match."""

import json
import os
import signal
import uuid
from pathlib import Path

import pytest

from accuracy.truth import exact_counts, started
from gilscope.process.procfs import read_status
from support.commands.gilscope import gilscope, gilscope_started
from support.commands.json_reports import assert_fits_schema, only_process
from support.paths import WORKLOADS
from support.reports.scraped import parse

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_TRACING = "Tracing the GIL of"
_EXACT_COUNT = str(WORKLOADS / "exact_count.py")
_WAIT_SECONDS = "gilscope_gil_wait_seconds_sum"


def test_workers_of_a_prefork_server_are_in_one_report(tmp_path: Path) -> None:
    """
    Those of the start and later ones; sums are the same in all formats, and the master is quiet.
    """
    files = {form: tmp_path / form for form in ("json", "text", "collapsed", "prometheus")}
    formats = [word for form in files for word in ("--format", f"{form}={files[form]}")]
    with (
        started([_PYTHON], "prefork.py") as workload,
        gilscope_started("record", "-p", str(workload.pid), *formats) as command,
    ):
        for pid in (workload.pid, *workload.ready["workers"]):
            command.says(f"{_TRACING} prefork.py, pid {pid} ")
        workload.command("begin")
        workload.answer()
        workload.command("restart")
        new = workload.answer()["restarted"]["new"]
        command.says(f"{_TRACING} prefork.py, pid {new} ")
        workload.command("stop")
        told = workload.answer()["workers"]
        workload.finish()
        outcome = command.outcome()
    report = json.loads(files["json"].read_text())
    by_pid = {each["process"]["pid"]: each for each in report["processes"]}
    waits = {pid: each["totals"]["waits"] for pid, each in by_pid.items()}

    assert 0 == outcome.exit_code
    assert_fits_schema(report)
    assert {workload.pid, *(worker["pid"] for worker in told)} == set(by_pid)
    assert 0 == waits[workload.pid]
    assert sum(waits.values()) == report["waits"]
    assert report["wait_s"] == pytest.approx(
        sum(each["totals"]["wait_s"] for each in by_pid.values()), abs=1e-6
    )
    for worker in told:
        if worker["pid"] != new:
            yields = sum(thread["waits"] for thread in worker["threads"])
            counted = by_pid[worker["pid"]]["totals"]["forced_switches"]
            assert counted == pytest.approx(yields, rel=0.2, abs=5)
    lines = files["text"].read_text().splitlines()
    assert "4 processes with a GIL" == lines[0]
    assert lines[3].startswith(f"{report['wait_s']:.3f}s lost waiting for the GIL in ")
    assert lines[3].endswith(f" in {report['waits']} waits, in 3 of them.")
    assert f"Lost nothing: prefork.py, pid {workload.pid}." in lines
    edges_ns = sum(
        round(edge["wait_s"] * 1e9) for each in by_pid.values() for edge in each["edges"]
    )
    collapsed = [line.rpartition(" ") for line in files["collapsed"].read_text().splitlines()]
    for end in ("waiters", "holders"):
        below = [(stack, ns) for stack, _, ns in collapsed if stack.startswith(f"{end};prefork.py")]
        assert edges_ns == sum(int(ns) for _, ns in below)
    assert sum(
        sample.value
        for family in parse(files["prometheus"].read_text()).families
        for sample in family.samples
        if sample.name == _WAIT_SECONDS
    ) == pytest.approx(sum(_finished_s(each) for each in by_pid.values()), abs=1e-6)


def _finished_s(process: dict[str, list[dict[str, dict[str, dict[str, float]]]]]) -> float:
    causes = [cause for each in process["interpreters"] for cause in each["waits"].values()]
    return sum(cause["wait_s"] for cause in causes)


def test_child_of_a_shell_is_counted() -> None:
    """
    The command itself never is Python; its child, which waits for a line, has all 23 waits.
    """
    line = f"{_PYTHON} {_EXACT_COUNT}; exit 5"
    with gilscope_started("record", "--format", "json", "--", "sh", "-c", line) as command:
        command.says(_TRACING)
        assert command.process.stdin is not None
        command.process.stdin.write("\n")
        command.process.stdin.flush()
        outcome = command.outcome()
    _, answer, text = outcome.output.split("\n", 2)
    truth, report = exact_counts(json.loads(answer)), only_process(text)
    (waiter,) = [thread for thread in report["threads"] if thread["tid"] == truth.waiter.tid]

    assert 5 == outcome.exit_code
    assert 23 == waiter["waits"]
    assert "exact_count.py" == report["process"]["name"]


def test_children_can_be_left_out() -> None:
    """
    With --no-children a master is reported by itself, whatever its workers do.
    """
    with (
        started([_PYTHON], "prefork.py") as workload,
        gilscope_started(
            "record", "--no-children", "-p", str(workload.pid), "--format", "json"
        ) as command,
    ):
        command.says(_TRACING)
        workload.command("begin")
        workload.answer()
        workload.command("stop")
        workload.answer()
        workload.finish()
        outcome = command.outcome()

    assert workload.pid == only_process(outcome.output)["process"]["pid"]


def test_program_that_is_replaced_is_reported_too(tmp_path: Path) -> None:
    """
    A process that executes another Python is there twice, each program with its own waits.
    """
    program = tmp_path / "first.py"
    program.write_text(
        "import os, sys, threading\n"
        "def crunch():\n"
        "    for _ in range(300):\n"
        "        sum(range(20000))\n"
        "threads = [threading.Thread(target=crunch) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        f"os.execv(sys.executable, [sys.executable, {_EXACT_COUNT!r}])\n"
    )
    with gilscope_started("record", "--format", "json", "--", _PYTHON, str(program)) as command:
        command.says(f"{_TRACING} first.py")
        command.says(f"{_TRACING} exact_count.py")
        assert command.process.stdin is not None
        command.process.stdin.write("\n")
        command.process.stdin.flush()
        outcome = command.outcome()
    _, answer, text = outcome.output.split("\n", 2)
    truth, report = exact_counts(json.loads(answer)), json.loads(text)
    by_name = {each["process"]["name"]: each for each in report["processes"]}
    second = by_name["exact_count.py"]
    (waiter,) = [each for each in second["threads"] if each["tid"] == truth.waiter.tid]

    assert 0 == outcome.exit_code
    assert {"first.py", "exact_count.py"} == set(by_name)
    assert second["process"]["pid"] == by_name["first.py"]["process"]["pid"]
    assert by_name["first.py"]["totals"]["waits"] > 0
    assert 23 == waiter["waits"]


def test_process_that_has_only_started_a_python_stands_for_it() -> None:
    """
    A shell has no GIL; what runs below it is recorded with its exact number of waits, to its end.
    """
    shell = ["sh", "-c", '"$0" "$@"; true', _PYTHON]
    with started(shell, "exact_count.py") as workload:
        parent = str(read_status(workload.pid).parent)
        alone = gilscope("record", "-p", parent, "--no-children")
        with gilscope_started("record", "-p", parent, "--format", "json") as command:
            command.says(f"{_TRACING} exact_count.py, pid {workload.pid} ")
            truth = exact_counts(workload.run())
            workload.finish()
            outcome = command.outcome()
    report = only_process(outcome.output)
    (waiter,) = [each for each in report["threads"] if each["tid"] == truth.waiter.tid]

    assert (3, 0) == (alone.exit_code, outcome.exit_code)
    assert 23 == waiter["waits"]


def test_matching_processes_are_in_one_report() -> None:
    """
    Two of a name, by a pattern of their command lines, each with its exact number of waits.
    """
    mark = f"-Xgilscope_test={uuid.uuid4().hex}"
    with (
        started([_PYTHON, mark], "exact_count.py") as one,
        started([_PYTHON, mark], "exact_count.py") as other,
        gilscope_started(
            "record", "--match", mark.removeprefix("-X"), "--format", "json"
        ) as command,
    ):
        for workload in (one, other):
            command.says(f"pid {workload.pid} ")
        truths = [exact_counts(workload.run()) for workload in (one, other)]
        command.send(signal.SIGINT)
        outcome = command.outcome()
    report = json.loads(outcome.output)
    waits = {
        thread["tid"]: thread["waits"]
        for process in report["processes"]
        for thread in process["threads"]
    }

    assert {one.pid, other.pid} == {each["process"]["pid"] for each in report["processes"]}
    assert [23, 23] == [waits[truth.waiter.tid] for truth in truths]


def test_nothing_that_matches_is_an_error_of_its_own() -> None:
    """
    So is a command that is none, and may be meant as a pattern.
    """
    pattern = f"nobody-is-called-{os.getpid()}"
    nothing = gilscope("record", "--match", f"^{pattern}$", "-d", "0.2")
    no_command = gilscope("record", pattern)

    assert 3 == nothing.exit_code
    assert "no Python process that was chosen has been running" in nothing.messages
    assert 127 == no_command.exit_code
    assert f"--match {pattern}\n" in no_command.messages


def test_signal_after_the_first_process_is_traced_gives_its_report() -> None:
    """
    Another one is still being attached to then; what was said to be traced is reported.
    """
    with (
        started([_PYTHON], "exact_count.py") as first,
        started([_PYTHON], "exact_count.py") as second,
        gilscope_started(
            "record", "-p", str(first.pid), "-p", str(second.pid), "--format", "json"
        ) as command,
    ):
        command.says(f"{_TRACING} exact_count.py, pid {first.pid} ")
        command.send(signal.SIGINT)
        outcome = command.outcome()
    pids = [each["process"]["pid"] for each in json.loads(outcome.output)["processes"]]

    assert 0 == outcome.exit_code
    assert first.pid in pids
