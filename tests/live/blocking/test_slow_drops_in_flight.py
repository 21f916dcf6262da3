"""A call into C that keeps the GIL and does not end: it is told while it lasts."""

import re
from pathlib import Path

import pytest

from support.commands.gilscope import eventually, gilscope
from support.commands.json_reports import frames_of, only_process
from support.commands.serve import serving
from support.held_in_c import SCRIPT, holder_started

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_SECONDS = "gilscope_gil_slow_drop_seconds_total"
_REQUESTS = "gilscope_gil_slow_drops_total"


def _site() -> str:
    lines = SCRIPT.read_text().splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if "PyDLL(None).read(" in line]
    return f"hold ({SCRIPT.name}:{number})"


def test_report_names_the_holder_of_a_call_that_goes_on(tmp_path: Path) -> None:
    """
    With its place and for how long, though nobody has got an answer.
    """
    file = tmp_path / "waits.json"
    formats = ("--full", "--format", "text", "--format", f"json={file}")
    with holder_started() as holder:
        holder.holds()
        outcome = gilscope("record", "-p", str(holder.pid), "-d", "1", *formats)
    report = only_process(file.read_text())
    (slow_drop,) = report["slow_drops"]

    assert "hold" == frames_of(report, slow_drop["holder"])[0]["function"]
    assert 1 == slow_drop["requests"]
    assert 0.5 < slow_drop["in_flight_s"] <= report["duration_s"] + 0.1
    assert slow_drop["in_flight_s"] == slow_drop["longest_s"] == slow_drop["drop_latency_s"]
    assert re.search("^Drop requests: [1-9][0-9]*, none answered[.]$", outcome.output, re.MULTILINE)
    assert f"line {_site().rpartition(':')[2][:-1]}, in hold" in outcome.output
    assert ", still unanswered after " in outcome.output
    assert f"Hog: {_site()}" in outcome.output.splitlines()
    assert "Convoy" not in outcome.output
    assert "unknown" not in outcome.output


def test_metrics_grow_during_the_call_and_do_not_fall_after_it() -> None:
    """
    So an alert fires while it lasts; when it has ended, it was one request.
    """
    with holder_started() as holder, serving("-p", str(holder.pid)) as service:
        holder.holds()
        own = {"holder": _site(), "pid": str(holder.pid)}

        def lost_s() -> float:
            return service.scrape().total(_SECONDS, **own)

        # What is lost before a place has a series of its own is under other.
        first_s = eventually(lost_s)
        eventually(lambda: lost_s() > first_s + 0.3)
        later_s = lost_s()
        holder.go_on()
        scrape = service.scrape()

    assert later_s <= scrape.total(_SECONDS, **own)
    assert 1 == scrape.total(_REQUESTS, pid=str(holder.pid))
