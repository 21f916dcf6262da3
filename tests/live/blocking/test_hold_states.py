"""Why the holder kept the GIL, for holders whose reason is known."""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import Answer, started
from support.commands.gilscope import gilscope
from support.commands.json_reports import frames_of, only_process
from support.interpreters.known import TIMED_MINORS, Interpreter
from support.tracing.trace import command_of

pytestmark = pytest.mark.live

beside_others = pytest.mark.beside_others
"""Whatever lacks a CPU because of others is told apart, and left out."""
_PYTHON = ["/usr/bin/python3"]
_SCRIPT = "held_why.py"
_LEAST = 0.95
_SECONDS = "3"
_CGROUPS = Path("/sys/fs/cgroup")
_PERIOD_US, _QUOTA_US = 100_000, 5_000


def _recorded(
    reason: str,
    python: Sequence[str] = _PYTHON,
    *options: str,
    seconds: str = _SECONDS,
    pid_of: Any = None,
) -> tuple[dict[str, Any], Answer]:
    """Return what a recording says of a process that holds the GIL for *reason*, and the truth."""
    with started(python, _SCRIPT, reason) as workload:
        if pid_of is not None:
            pid_of(workload.pid)
        outcome = gilscope(
            *("record", "-p", str(workload.pid), "--no-children"),
            *("-d", seconds, "--format", "json", *options),
        )
        truth = workload.run()
        workload.finish()
    assert 0 == outcome.exit_code, outcome.messages
    return only_process(outcome.output), truth


def _lost_by_state(report: Mapping[str, Any]) -> Counter[str]:
    lost_s: Counter[str] = Counter()
    for each in report["held_up"]:
        lost_s[each["state"]] += each["wait_s"]
    return lost_s


def _lost_to(function: str, report: Mapping[str, Any]) -> Counter[str]:
    """Return the same of what was lost while *function* held the GIL."""
    held_up = [
        each
        for each in report["held_up"]
        if function in {frame["function"] for frame in frames_of(report, each["holder"])}
    ]
    return _lost_by_state({"held_up": held_up})


def _share_with_cpu(report: Mapping[str, Any], function: str, state: str) -> float:
    """Return the share of *state* in what was lost to *function* while it did not lack a CPU.

    Somebody else may have had it, which is then told, and is not what is asked here. Nor is what
    the other thread keeps the GIL for: on a busy machine, because it lacks a CPU too.
    """
    lost_s = _lost_to(function, report)
    return lost_s[state] / (lost_s.total() - lost_s["no_cpu"])


def _details(report: Mapping[str, Any], state: str) -> set[str | None]:
    return {each["detail"] for each in report["held_up"] if each["state"] == state}


@beside_others
@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_garbage_collection_is_told(interpreter: Interpreter) -> None:
    """
    One that is asked for, on every version; the generation where the version keeps it.
    """
    report, truth = _recorded("collect", command_of(interpreter))

    assert truth["collected"] > 0.8
    assert _share_with_cpu(report, "collect", "gc") >= _LEAST
    has_generations = interpreter.minor < (3, 14)
    assert _details(report, "gc") == {"generation 2" if has_generations else None}


@beside_others
@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_garbage_collection_by_itself_is_told(interpreter: Interpreter) -> None:
    """
    In the function whose containers are too many; not where containers are made before.
    """
    report, truth = _recorded("allocate", command_of(interpreter), seconds="2")

    assert truth["collected"] > 0.1
    assert _share_with_cpu(report, "overflow", "gc") >= _LEAST
    assert _share_with_cpu(report, "make", "gc") <= 1 - _LEAST


@pytest.mark.parametrize(
    ("reason", "state", "detail"),
    [
        ("nap", "syscall", "clock_nanosleep"),
        ("read", "syscall", "read on fd"),
        ("match", "native", "python3"),
        ("spin", "native", "libspin.so spin_with_the_gil"),
        ("compute", "python", None),
    ],
)
def test_what_the_holder_does_is_told(reason: str, state: str, detail: str | None) -> None:
    """
    A call of the kernel by its name and file, code in C by its module.
    """
    # The first of the calls may be over before one has been sampled twice, and is not told then.
    report, _ = _recorded(reason, seconds="6")

    assert _share_with_cpu(report, reason, state) >= _LEAST
    told = _details(report, state)
    assert {None} == told if detail is None else any(str(each).startswith(detail) for each in told)


@beside_others
def test_the_calls_that_led_to_c_code_are_told() -> None:
    """
    From the function of a library of our own through ctypes to Python code, if asked for.
    """
    report, _ = _recorded("spin", _PYTHON, "--native-stacks")
    (calls,) = {
        tuple(each["native_calls"])
        for each in report["held_up"]
        if each["detail"] == "libspin.so spin_with_the_gil"
    }

    # Up to the function of the interpreter that calls objects, some of which are exported.
    assert "libffi" == calls[0][:6]
    assert any(re.fullmatch(r"libffi\.so[.\d]* ffi_call", call) for call in calls)
    assert any(call.startswith("_ctypes.") for call in calls)
    assert calls[-1].startswith("python3")
    assert not any("_PyEval_EvalFrameDefault" in call for call in calls)


def test_a_holder_that_nobody_runs_lacks_a_cpu() -> None:
    """
    Idle priority beside a process that is busy on the same CPU.
    """
    cpu = str(min(os.sched_getaffinity(0)))
    pinned = ["taskset", "--cpu-list", cpu]
    busy = [*pinned, *_PYTHON, "-c", "while True: pass"]

    def crowd_out(pid: int) -> None:
        # Both threads, once they are there: a process that starts like that would start for ever.
        for command in (["taskset", "-apc", cpu], ["chrt", "--all-tasks", "--idle", "-p", "0"]):
            subprocess.run([*command, str(pid)], check=True, capture_output=True)

    with subprocess.Popen(busy) as process:
        try:
            report, _ = _recorded("compute", pid_of=crowd_out)
        finally:
            process.kill()

    lost_s = _lost_to("compute", report)
    assert lost_s["no_cpu"] >= _LEAST * lost_s.total()


@contextmanager
def _limited_cgroup() -> Iterator[Path]:
    """Make a group of processes that has a CPU for a twentieth of the time."""
    is_old = (_CGROUPS / "cpu").is_dir()
    folder = (_CGROUPS / "cpu" if is_old else _CGROUPS) / f"gilscope-{os.getpid()}"
    if not is_old:
        (_CGROUPS / "cgroup.subtree_control").write_text("+cpu")
    folder.mkdir()
    try:
        if is_old:
            (folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(_QUOTA_US))
        else:
            (folder / "cpu.max").write_text(f"{_QUOTA_US} {_PERIOD_US}")
        yield folder
    finally:
        folder.rmdir()


def test_a_throttled_holder_lacks_a_cpu() -> None:
    """
    And its cgroup's own figure stands beside it.
    """
    with _limited_cgroup() as folder:

        def limit(pid: int) -> None:
            (folder / "cgroup.procs").write_text(str(pid))

        report, _ = _recorded("compute", pid_of=limit)
    lost_s = _lost_to("compute", report)

    # It has a CPU for a twentieth of the time, of which a sample may miss some.
    assert lost_s["no_cpu"] >= 0.9 * lost_s.total()
    assert report["totals"]["throttled_s"] >= 0.8 * report["duration_s"]
