"""Who holds the GIL where nobody waits for it."""

import re
from pathlib import Path

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope
from support.commands.json_reports import frames_of, only_process
from support.interpreters.known import TIMED_MINORS, Interpreter
from support.paths import WORKLOADS

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_SCRIPT = "one_busy.py"
_LINE = re.compile(r" *≈ (\d+) % ±(\d+) +(\w+) \(one_busy\.py:(\d+)\)")
_ROUNDED = 1.0
"""Points by which the text may be off by itself."""


def _line_of(text: str) -> int:
    lines = (WORKLOADS / _SCRIPT).read_text().splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if text in line]
    return number


@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_shares_are_those_that_the_program_has_measured(
    interpreter: Interpreter, tmp_path: Path
) -> None:
    """
    Within their own errors, of a thread that nobody waits for; library code counts as its caller.
    """
    report = tmp_path / "report.json"
    with started(interpreter.argv, _SCRIPT) as workload:
        outcome = gilscope(
            *("record", "--full", "-p", str(workload.pid), "-d", "3"),
            *("--format", "text", "--format", f"json={report}"),
        )
        workload.command("stop")
        truth = workload.answer()
        workload.finish()
    told = {
        found[3]: (int(found[1]), int(found[2]), int(found[4]))
        for line in outcome.output.splitlines()
        if (found := _LINE.match(line))
    }

    assert 0 == outcome.exit_code
    for name in ("render", "spin"):
        share, error, _ = told[name]
        # Twice what chance allows in 19 of 20 cases: in all of them, for practical purposes.
        assert abs(share - 100 * truth[name]) <= 2 * error + _ROUNDED, (name, told, truth)
    assert _line_of("return json.dumps(ORDERS") == told["render"][2]
    assert "No thread had to wait for the GIL.\nThat is no contention" in outcome.output
    assert "Python code has the GIL for most of the time" in outcome.output
    process = only_process(report.read_text())
    held_s = sum(held["held_s"] for held in process["held_by"])
    assert 0 < held_s <= process["totals"]["sampled_s"] <= process["duration_s"]
    inner = {
        frame["file"].rpartition("/")[2]
        for held in process["held_by"]
        for frame in frames_of(process, held["holder"])[:1]
    }
    assert "encoder.py" in inner


def test_a_blocked_event_loop_is_named() -> None:
    """
    A coroutine that computes keeps all others waiting, though not for the GIL.
    """
    with started([_PYTHON], _SCRIPT, "--loop") as workload:
        outcome = gilscope("record", "-p", str(workload.pid), "-d", "2")
        workload.command("stop")
        workload.answer()
        workload.finish()

    assert "But code kept the asyncio event loop for most of the time" in outcome.output


def test_without_stacks_nothing_is_read() -> None:
    """
    With --no-stacks there are no holders, and the JSON says that they are not known.
    """
    with started([_PYTHON], _SCRIPT) as workload:
        line = ("record", "-p", str(workload.pid), "-d", "0.5", "--no-stacks")
        text = gilscope(*line)
        report = only_process(gilscope(*line, "--format", "json").output)
        workload.command("stop")
        workload.answer()
        workload.finish()

    assert "Who held the GIL, by place" not in text.output
    assert report["held_by"] is None
    assert (None, None) == (report["totals"]["samples"], report["totals"]["sampled_s"])
