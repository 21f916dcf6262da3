"""Which request a thread serves, in a dump and in what is captured."""

import json
from pathlib import Path

import pytest

from accuracy.truth import started
from support.commands.gilscope import eventually, gilscope
from support.commands.json_reports import assert_dump_fits_schema
from support.commands.serve import serving

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = ["/usr/bin/python3"]
_SCRIPT = "traced_requests.py"
_FIRST = ("a1" * 16, "01" * 8)


def test_a_dump_says_which_request_each_thread_serves() -> None:
    """
    The main thread serves none; a round later the worker serves another.
    """
    with started(_PYTHON, _SCRIPT) as workload:
        workload.command()
        assert workload.answer()["loaded"]
        found = []
        for _ in range(2):
            outcome = gilscope("dump", "-p", str(workload.pid), "--format", "json")
            report = json.loads(outcome.output)
            assert_dump_fits_schema(report)
            found.append({each["tid"]: each["trace_id"] for each in report["threads"]})
            text = gilscope("dump", "-p", str(workload.pid)).output
            workload.command()
            workload.answer()
        workload.finish()

    assert [None, None] == [each.pop(workload.pid) for each in found]
    assert [["a1" * 16], ["b2" * 16]] == [list(each.values()) for each in found]
    assert f"  serves trace {'b2' * 16}, span {'02' * 8}" in text


def test_what_is_captured_says_it_too(tmp_path: Path) -> None:
    """
    Of the thread whose wait has passed the limit.
    """
    folder = tmp_path / "captures"
    folder.mkdir()
    with (
        started(_PYTHON, _SCRIPT) as workload,
        serving(
            *("-p", str(workload.pid), "--capture-above", "150ms"),
            *("--capture-dir", str(folder)),
        ) as service,
    ):
        # Who waits wakes up once an interval, and finds that it has waited for too long.
        workload.command("0.005")
        assert workload.answer()["loaded"]
        eventually(
            lambda: (
                json.loads(service.get("/report?form=json&last=600").text)["processes"][0]["traces"]
                is not None
            )
        )
        workload.command()
        workload.answer()
        file = eventually(lambda: next(folder.glob("*.json*"), None))
        captured = eventually(lambda: file.read_text() if file else "")
        workload.finish()

    dump = json.loads(captured)
    (waiter,) = (each for each in dump["threads"] if each["tid"] == dump["trigger"]["tid"])
    assert _FIRST == (waiter["trace_id"], waiter["span_id"])
