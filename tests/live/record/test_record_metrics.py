"""``gilscope record --format openmetrics`` and ``prometheus``: metrics of one recording."""

import platform
import re
import time
from pathlib import Path

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope
from support.commands.json_reports import only_process
from support.reports.scraped import parse

pytestmark = pytest.mark.live

_COUNTS = r"\w+_(total|bucket|count|sum)\{"


def test_both_have_the_figures_of_the_report(tmp_path: Path) -> None:
    """
    Of one recording, metrics and JSON say the same, and OpenMetrics says how it came to that.
    """
    formats = ("json", "openmetrics", "prometheus")
    words = [f"--format={form}={tmp_path / form}" for form in formats]
    before_s = time.time()
    with started(["/usr/bin/python3"], "convoy.py", "--client") as workload:
        outcome = gilscope("record", "-p", str(workload.pid), "--no-children", "-d", "3", *words)
    after_s = time.time()
    report = only_process((tmp_path / "json").read_text())
    plain = parse((tmp_path / "prometheus").read_text())
    lines = (tmp_path / "openmetrics").read_text().splitlines()
    samples = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    began_s, *looks_s, ended_s = sorted({float(time) for _, _, time in samples})
    series: dict[str, list[float]] = {}
    for text, _, _ in samples:
        name, _, value = text.rpartition(" ")
        series.setdefault(name, []).append(float(value))
    values = [text for text, _, time in samples if float(time) == ended_s]

    assert 0 == outcome.exit_code
    totals = report["totals"]
    waited = plain.total("gilscope_gil_thread_wait_seconds_total")
    assert pytest.approx(totals["wait_s"]) == waited
    assert totals["convoy_waits"] == plain.total("gilscope_gil_convoy_waits_total") > 0
    assert pytest.approx(waited) == plain.total("gilscope_gil_blocked_seconds_total")
    assert {repr(totals["convoy_waits"])} == {
        text.rpartition(" ")[2] for text in values if text.startswith("gilscope_gil_convoy_waits")
    }
    assert before_s < began_s < ended_s < after_s + 0.001
    assert 1 <= len(looks_s) <= 2
    counts = {name: seen for name, seen in series.items() if re.match(_COUNTS, name)}
    assert [] == [name for name, seen in counts.items() if seen != sorted(seen) or seen[0] != 0]
    assert pytest.approx(report["duration_s"], abs=0.002) == ended_s - began_s
    assert all(f'job="gilscope",instance="{platform.node()}"' in text for text in values)
