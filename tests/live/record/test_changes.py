"""What a report says that a change would bring, held against a process that has been changed."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope_started

pytestmark = pytest.mark.live

_PYTHON = ["/usr/bin/python3"]
_TURNS, _HOLDS = 40, 12
_ARMS = {
    "long": ("turns", "0.05", str(_TURNS)),
    "short": ("turns", "0.005", str(_TURNS)),
    "both": ("places", str(_HOLDS), "slow", "quick"),
    "one": ("places", str(_HOLDS), "quick"),
}
_WITHIN = 0.2


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one recording says of a process for each of the arms, which are played in turn."""
    file: Path = tmp_path_factory.mktemp("changes") / "all.json"
    with ExitStack() as stack:
        workloads = {
            name: stack.enter_context(started(_PYTHON, "advised.py", *arguments))
            for name, arguments in _ARMS.items()
        }
        pids = [argument for each in workloads.values() for argument in ("-p", str(each.pid))]
        command = stack.enter_context(gilscope_started("record", *pids, "-o", str(file)))
        for _ in workloads:
            command.says("Tracing the GIL of")
        for each in workloads.values():
            each.run()
        for each in workloads.values():
            each.finish()
        outcome = command.outcome()
    assert 0 == outcome.exit_code, outcome.messages
    processes = {each["process"]["pid"]: each for each in json.loads(file.read_text())["processes"]}
    return {name: processes[each.pid] for name, each in workloads.items()}


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
    assert left_s == pytest.approx(one["totals"]["wait_s"], rel=_WITHIN)
