"""``gilscope record``: what its reports say, against what the program and a clock say."""

import json
import signal

import pytest

from accuracy.truth import exact_counts, started
from support.commands.gilscope import gilscope, gilscope_started
from support.commands.json_reports import assert_consistent, frames_of, only_process
from support.interpreters.builds import build
from support.paths import WORKLOADS

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3"
_TRACING = "Tracing the GIL of"
_EXACT_COUNT = str(WORKLOADS / "exact_count.py")


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
    report = only_process(outcome.output)
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
    if truth.is_exact:
        # On a machine that stalls, a short wait may last so long that it asks for a drop as well.
        assert truth.drop_requests == sum(n for _, n in report["histograms"]["drop_latency"])
    process = dict(report["process"])
    process.pop("build_id")
    assert {"hold_s", "holds"} <= set(process.pop("unknown"))
    assert {
        "pid": workload.pid,
        "name": "exact_count.py",
        "service": None,
        "runtime": "cpython",
        "python": "3.11.2",
        "gil": True,
        "gil_needed_by": None,
        "gil_since": None,
        "method": "sites",
        "valid": True,
        "invalid_reason": None,
    } == process
    assert_consistent(report)


def test_text_tells_the_known_answer() -> None:
    """
    The text names the waiting role with the number of its waits of each kind.
    """
    with (
        started([_PYTHON], "exact_count.py") as workload,
        gilscope_started("record", "--full", "-p", str(workload.pid)) as command,
    ):
        command.says(_TRACING)
        truth = exact_counts(workload.run())
        command.send(signal.SIGINT)
        outcome = command.outcome()
    lines = outcome.output.splitlines()
    convoys = truth.waiter.convoy_waits
    table = lines[lines.index("Time lost, by thread role and kind") :]
    (convoy,) = [line for line in table if f"({convoys}x GIL_CONVOY)" in line]

    assert f"exact_count.py, pid {workload.pid}, CPython 3.11.2" == lines[0]
    assert "waiter (" in table[table.index(convoy) + 1]
    assert 1 == sum(f"({23 - convoys}x GIL_BLOCKING_CALL)" in line for line in table)
    assert "No event was lost." == lines[-1]


def test_recording_ends_after_its_duration() -> None:
    """
    With -d the recording lasts for so long, to a few ticks of the clock.
    """
    with started([_PYTHON], "exact_count.py") as workload:
        outcome = gilscope("record", "-p", str(workload.pid), "-d", "0.25", "--format", "json")

    assert 0 == outcome.exit_code
    assert 0.25 <= only_process(outcome.output)["duration_s"] < 1.0


@pytest.mark.parametrize("name", ["debian-3.11", "pyenv-3.8", "pyenv-3.13"])
def test_command_is_traced_from_its_first_wait(name: str) -> None:
    """
    A command that contends as soon as it can has all of its 23 waits counted.
    """
    python = build(name).argv
    outcome = gilscope("record", "--format", "json", "--", *python, _EXACT_COUNT, typed="\n")
    _, answer, text = outcome.output.split("\n", 2)
    truth, report = exact_counts(json.loads(answer)), only_process(text)
    # Before its first round a thread may wait for the one that has started it.
    waits = [
        edge["waits"]
        for edge in report["edges"]
        if "wait_in_c" in [frame["function"] for frame in frames_of(report, edge["waiter"])]
    ]

    assert 0 == outcome.exit_code
    assert 23 == truth.waits == sum(waits)
    assert {} == report["totals"]["lost_events"]
    assert_consistent(report)
