"""``gilscope record -p``: its reports, its exit codes, and its usage."""

import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from accuracy.truth import started
from gilscope.model.histogram import SLOTS, bound_ns
from gilscope.transactions.target import CHECKED
from support.commands.gilscope import eventually, gilscope, gilscope_started
from support.commands.json_reports import assert_consistent, only_process

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_TRACING = "Tracing the GIL of"
_OWN_PID = str(os.getpid())

_NOT_MEASURED = {"hold_s", "holds"}
"""In contention mode, which sees no holds."""
_OF_OTHER_LOCKS = ("failed_wakeups", "failed_wakeup_wait_s")
"""Which CPython 3 does not have."""
_KEYS = {
    "": {
        *("version", "mode", "duration_s", "process", "totals", "histograms", "threads"),
        *("interpreters", "edges", "slow_drops", "held_by", "held_up", "stacks", "frames"),
        *("wait_s", "waits", "processes", "transactions", "locks", "refused"),
        *("left_out", "changes", "brief_releases", "traces"),
    },
    "process": {
        *("pid", "name", "service", "runtime", "python", "build_id", "gil"),
        *("gil_needed_by", "gil_since", "method", "valid"),
        *("invalid_reason", "unknown"),
    },
    "totals": {
        *("wait_s", "waits", "forced_switches", "drop_requests", "convoy_waits", "lost_events"),
        *("held_s", "observed_s", "overhead_s", "cpu_s", "samples", "sampled_s", "throttled_s"),
        *("waits_unseen_s", "wait_error"),
        *("acquires", "acquires_estimated"),
        *_NOT_MEASURED,
        *_OF_OTHER_LOCKS,
    },
    "histograms": {"wait", "hold", "switch_latency", "drop_latency"},
    "threads": {
        *("tid", "role", "wait_s", "waits", "forced_switches", "kinds"),
        *_NOT_MEASURED,
        *_OF_OTHER_LOCKS,
    },
    "interpreters": {
        *("id", "switch_interval_s", "check_interval", "waits", "convoy_waits", "forced_switches"),
        *("drop_requests", "held_s", "convoy_threshold_s"),
        *_NOT_MEASURED,
    },
    "changes": {
        *("change", "assumption", "holder", "saved_s", "saved_itself_s", "switch_interval_s"),
        *("mean_wait_s", "expected_wait_s", "least_wait_s", "most_wait_s", "switches_ratio"),
        *("role", "number", "enough"),
    },
    "edges": {
        *("kind", "wait_s", "waits", "waiter", "holder"),
    },
    "slow_drops": {"holder", "drop_latency_s", "requests", "longest_s", "in_flight_s"},
    "held_by": {"holder", "state", "detail", "native_calls", "held_s"},
    "held_up": {"holder", "kind", "state", "detail", "native_calls", "wait_s"},
    "stacks": {"state", "frames"},
    "frames": {"function", "file", "line", "first_line"},
}


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
        report = only_process(command.outcome().output)

    assert 2 == report["version"]
    assert "contention" == report["mode"]
    for name, keys in _KEYS.items():
        part = report[name] if name else report
        for one in part if isinstance(part, list) else [part]:
            assert keys == set(one), name
    for part in (report["totals"], *report["threads"], *report["interpreters"]):
        assert {None} == {part[key] for key in _NOT_MEASURED}
    assert report["totals"]["observed_s"] is None
    # This is estimated in every mode.
    assert 0 <= report["totals"]["held_s"] <= report["duration_s"]
    assert report["totals"]["overhead_s"] > 0
    assert None is report["histograms"]["hold"]
    assert None is report["histograms"]["switch_latency"]
    bounds_s = [*(bound_ns(slot) / 1e9 for slot in range(SLOTS - 1)), None]
    for name in ("wait", "drop_latency"):
        assert {bound for bound, _ in report["histograms"][name]} <= set(bounds_s)
        assert report["histograms"][name][-1][0] is None


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
    assert "None: no thread had to wait for the GIL." in outcome.output
    assert "until the process ended" not in outcome.output
    assert 1 == len(outcome.messages.splitlines())


def test_process_that_ends_is_reported(tmp_path: Path) -> None:
    """
    The end of the target ends the recording, with all that was counted until then.
    """
    file = tmp_path / "report.json"
    formats = ("--format", "text", "--format", f"json={file}")
    with (
        started([_PYTHON], "exact_count.py") as workload,
        gilscope_started("record", "-p", str(workload.pid), *formats) as command,
    ):
        command.says(_TRACING)
        truth = workload.run()
        workload.finish()
        outcome = command.outcome()

    assert 0 == outcome.exit_code
    assert "until the process ended" in outcome.output.splitlines()[0]
    # Names are read from a process that lives; what was counted needs none.
    lost = re.search(r"lost in (\d+) waits", outcome.output)
    assert lost is not None, outcome.output
    waits = {each["tid"]: each["waits"] for each in only_process(file.read_text())["threads"]}
    assert sum(waits.values()) == int(lost[1])
    # How often the others had to wait depends on who was faster.
    assert truth["waits"] == waits[workload.ready["waiter"]]


def test_process_that_becomes_another_program_is_reported() -> None:
    """
    An exec ends a recording without children; the new program is neither harmed nor counted.
    """
    with (
        started([_PYTHON], "execer.py") as workload,
        gilscope_started(
            "record", "-p", str(workload.pid), "--no-children", "--format", "json"
        ) as command,
    ):
        command.says(_TRACING)
        truth = workload.run()["threads"]
        outcome = command.outcome()
        second = workload.answer()
        result = workload.run()

        assert 0 == workload.finish()
    report = only_process(outcome.output)

    assert (True, 2, workload.pid) == (second["ready"], second["stage"], second["pid"])
    assert 2 == result["stage"]
    assert 0 == outcome.exit_code
    assert {thread["tid"] for thread in truth} <= {thread["tid"] for thread in report["threads"]}
    assert {"MainThread"} == {
        thread["role"] for thread in report["threads"] if thread["tid"] == workload.pid
    }
    assert_consistent(report)


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
        ["-p", _OWN_PID, "--format", "json=/nonexistent/report"],
        ["-p", _OWN_PID, "--format", "json", "--format", "text"],
        ["-p", _OWN_PID, "--format", "json=/dev/null", "-o", "/dev/zero"],
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


def test_several_reports_of_one_recording(tmp_path: Path) -> None:
    """
    Each goes to its own place, and all are of the same recording.
    """
    forms = ("json", "html", "collapsed", "speedscope", "perfetto")
    formats = [word for form in forms for word in ("--format", f"{form}={tmp_path / form}")]
    with (
        started([_PYTHON], "exact_count.py") as workload,
        gilscope_started(
            "record", "-p", str(workload.pid), "--full", "--format", "text", *formats
        ) as command,
    ):
        command.says(_TRACING)
        workload.run()
        command.send(signal.SIGINT)
        outcome = command.outcome()
    report = only_process((tmp_path / "json").read_text())
    trace = json.loads((tmp_path / "perfetto").read_text())

    assert (0, 1) == (outcome.exit_code, len(outcome.messages.splitlines()))
    assert f"{report['totals']['wait_s']:.3f}s lost waiting for the GIL" in outcome.output
    assert_consistent(report)
    assert "<html" in (tmp_path / "html").read_text()
    assert 'id="moment"' in (tmp_path / "html").read_text()
    assert 23 <= sum(event.get("cat") == "wait" for event in trace["traceEvents"])
    for form in ("collapsed", "speedscope"):
        assert "wait_in_c" in (tmp_path / form).read_text()


def test_report_that_cannot_be_written_is_said_and_the_others_come(tmp_path: Path) -> None:
    """
    A full disk costs one report and makes the exit code 1.
    """
    waits = tmp_path / "waits.json"
    with started([_PYTHON], "exact_count.py") as workload:
        outcome = gilscope(
            *("record", "-p", str(workload.pid), "-d", "0.1"),
            *("--format", "text=/dev/full", "--format", f"json={waits}"),
        )

    assert (1, "") == (outcome.exit_code, outcome.output)
    assert "cannot write the text report to /dev/full: No space left" in outcome.messages
    assert workload.pid == only_process(waits.read_text())["process"]["pid"]


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
        f"error: process {process.pid} (sleep) does not map a Python interpreter, {CHECKED}"
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
