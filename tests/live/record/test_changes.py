"""What a report says that a change would bring, held against a process that has been changed."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope_started
from support.commands.json_reports import frames_of, only_process
from support.paths import WORKLOADS

pytestmark = pytest.mark.live

_PYTHON = ["/usr/bin/python3"]
_TURNS, _HOLDS, _CALLS = 40, 12, 100
_ARMS = {
    "long": ("turns", "0.05", str(_TURNS)),
    "short": ("turns", "0.005", str(_TURNS)),
    "both": ("places", str(_HOLDS), "slow", "quick"),
    "one": ("places", str(_HOLDS), "quick"),
}
_WITHIN = 0.2


_recorded: dict[str, Any] = {}


@pytest.fixture
def reports(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """What one recording, which the tests share, says of a process for each of the arms.

    A test that is made again has it recorded again, too.
    """
    if not _recorded or getattr(request.node, "execution_count", 1) > 1:
        _recorded.update(_record(tmp_path / "all.json"))
    return _recorded


def _record(file: Path) -> dict[str, Any]:
    """Play the arms in turn."""
    with ExitStack() as stack:
        workloads = {
            name: stack.enter_context(started(_PYTHON, "advised.py", *arguments))
            for name, arguments in _ARMS.items()
        }
        pids = [argument for each in workloads.values() for argument in ("-p", str(each.pid))]
        outputs = ("--full", "--format", "text", "--format", f"json={file}")
        command = stack.enter_context(gilscope_started("record", *pids, *outputs))
        for _ in workloads:
            command.says("Tracing the GIL of")
        for each in workloads.values():
            each.run()
        for each in workloads.values():
            each.finish()
        outcome = command.outcome()
    assert 0 == outcome.exit_code, outcome.messages
    processes = {each["process"]["pid"]: each for each in json.loads(file.read_text())["processes"]}
    found = {name: processes[each.pid] for name, each in workloads.items()}
    return {**found, "text": outcome.output}


def _change(report: Any, kind: str) -> Any:
    (change,) = [each for each in report["changes"] if each["change"] == kind]
    return change


def _convoy(report: Any) -> Any:
    return next(
        thread["kinds"]["GIL_CONVOY"]
        for thread in report["threads"]
        if (thread["role"] or "").startswith(("come_back", "answer"))
    )


def test_shorter_interval(reports: dict[str, Any]) -> None:
    """
    Each return waits for one turn in both arms, and that takes as long as was estimated.
    """
    before, after = (_convoy(reports[arm]) for arm in ("long", "short"))
    change = _change(reports["long"], "switch_interval")
    mean_s = after["wait_s"] / after["waits"]

    assert (0.005, 0.005) == (
        change["switch_interval_s"],
        reports["short"]["interpreters"][0]["switch_interval_s"],
    )
    # One more where the thread that begins waits for it as well, and fewer where the machine is so
    # busy that the other thread does not have it back by then.
    assert 0.8 * _TURNS <= before["waits"] <= _TURNS + 1
    assert 0.8 * _TURNS <= after["waits"] <= _TURNS + 1
    assert mean_s == pytest.approx(change["expected_wait_s"], rel=_WITHIN)


def test_other_process(reports: dict[str, Any]) -> None:
    """
    Without the slow place, what is lost behind the other one is left, and nothing else.
    """
    both, one = reports["both"], reports["one"]
    change = _change(both, "other_process")
    left_s = both["totals"]["wait_s"] - change["saved_s"]

    assert 0 == change["saved_itself_s"]
    assert (2 * _HOLDS, _HOLDS) == (_convoy(both)["waits"], _convoy(one)["waits"])
    assert "Calls that keep the GIL while others wait\n  slow (" in reports["text"]
    assert left_s == pytest.approx(one["totals"]["wait_s"], rel=_WITHIN)


def test_calls_that_should_keep_the_gil(tmp_path: Path) -> None:
    """
    A call of 20 us pays with a switch interval; the sleep of 5 ms beside it is no such call.
    """
    file = tmp_path / "calls.json"
    outputs = ("--full", "--format", "text", "--format", f"json={file}")
    with (
        started(_PYTHON, "advised.py", "calls", "0.005", str(_CALLS)) as workload,
        gilscope_started("record", "-p", str(workload.pid), "--mode", "full", *outputs) as command,
    ):
        command.says("Tracing the GIL of")
        workload.run()
        workload.finish()
        outcome = command.outcome()
    report = only_process(file.read_text())
    (brief,) = [
        each
        for each in report["brief_releases"]
        if "drain" == frames_of(report, each["waiter"])[0]["function"]
    ]
    (line,) = {each["line"] for each in frames_of(report, brief["waiter"])[:1]}
    behind_s = sum(
        each["wait_s"]
        for each in report["edges"]
        if frames_of(report, each["waiter"])[:1] == frames_of(report, brief["waiter"])[:1]
    )
    base = report["totals"]

    assert "_RELEASED.usleep(_BRIEF_US)" == _lines("advised.py")[line - 1].strip()
    assert 0 < brief["calls"] <= _CALLS
    assert 20e-6 <= brief["away_s"] / brief["calls"] < 100e-6
    assert brief["away_s"] < brief["wait_s"] <= behind_s * 1.000001
    assert (base["holds"], False) == (base["acquires"], base["acquires_estimated"])
    assert "Released for microseconds, and waited for longer to get it back\n  drain (" in (
        outcome.output
    )


def _lines(workload: str) -> list[str]:
    return (WORKLOADS / workload).read_text().splitlines()
