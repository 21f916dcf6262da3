"""Whose code kept the GIL, where all of the work is done in a library that it calls."""

import re
from pathlib import Path

import pytest

from accuracy.truth import started
from support.commands.gilscope import eventually, gilscope
from support.commands.serve import serving
from support.paths import WORKLOADS
from support.reports.scraped import parse

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_SCRIPT = "library_calls.py"
_HOLDER = "gilscope_gil_holder_seconds_total"
_LEAST_SHARE = 0.8


def _site() -> str:
    """Return the one line of the application that does anything."""
    lines = (WORKLOADS / _SCRIPT).read_text().splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if "json.dumps(ORDERS" in line]
    return f"render ({_SCRIPT}:{number})"


def test_a_recording_names_the_applications_line(tmp_path: Path) -> None:
    """
    In the text, in the page and in the metrics, with at least 80 % of what was lost.
    """
    page, metrics = tmp_path / "waits.html", tmp_path / "waits.prom"
    formats = ["--format", "text", "--format", f"html={page}", "--format", f"prometheus={metrics}"]
    with started([_PYTHON], _SCRIPT) as workload:
        outcome = gilscope("record", "-p", str(workload.pid), "-d", "2", "--full", *formats)
        workload.finish()
    lines = outcome.output.splitlines()
    first, source = lines[lines.index("Whose code kept the GIL") + 1 :][:2]
    told = re.fullmatch(r" *[0-9.]+s +([0-9]+) %  (.+\)), (?:mostly )?GIL_PREEMPTION", first)
    samples = [
        sample
        for family in parse(metrics.read_text()).families
        for sample in family.samples
        if sample.name == _HOLDER
    ]
    own = [each.value for each in samples if each.labels["holder"] == _site()]

    assert told is not None
    assert _site() == told[2]
    assert int(told[1]) >= _LEAST_SHARE * 100
    assert "return json.dumps(ORDERS, indent=1)" == source.strip()
    assert re.search(
        f'class="lead">[^.]+[.][^.]+ while <[^>]+>{re.escape(_site())}<', page.read_text()
    )
    assert sum(own) >= _LEAST_SHARE * sum(each.value for each in samples)


def test_serve_names_it_too() -> None:
    """
    Which keeps no whole stacks: whatever was called, its caller in the application is known.
    """
    with (
        started([_PYTHON], _SCRIPT) as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        own = {"holder": _site(), "application": "true", "pid": str(workload.pid)}
        eventually(lambda: service.scrape().total(_HOLDER, **own) > 1, within_s=30)
        scrape = service.scrape()
        workload.finish()
    # What was lost before it had series of its own is under other.
    before = scrape.total(_HOLDER, holder="other", application="true")

    assert scrape.total(_HOLDER, **own) + before >= _LEAST_SHARE * scrape.total(_HOLDER)


def test_the_user_can_say_what_is_the_applications() -> None:
    """
    Then the innermost frame of that is told.
    """
    with started([_PYTHON], _SCRIPT) as workload:
        outcome = gilscope(
            "record", "-p", str(workload.pid), "-d", "1", "--full", "--app", "json.encoder"
        )
        workload.finish()
    lines = outcome.output.splitlines()
    first = lines[lines.index("Whose code kept the GIL") + 1]

    assert "(json/encoder.py:" in first
