"""``gilscope snapshot``: what a running ``serve`` reports of its last minutes."""

import json
from pathlib import Path

import pytest

from accuracy.truth import exact_counts, started
from support.commands.gilscope import gilscope
from support.commands.json_reports import assert_fits_schema, only_process
from support.commands.serve import serving
from support.reports.html_tree import parse

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


def test_report_has_the_waits_that_there_were(tmp_path: Path) -> None:
    """
    The process stands still, so report and scrape are of the same sums; the page links to it.
    """
    file = tmp_path / "now.json"
    with (
        started(["/usr/bin/python3"], "exact_count.py") as workload,
        serving("-p", str(workload.pid), "--mode", "contention") as service,
    ):
        truth = exact_counts(workload.run())
        url = service.url.rstrip("/")
        made = gilscope("snapshot", url, "-p", str(workload.pid), "-o", str(file))
        scrape = service.scrape()
        screen = gilscope("snapshot", url, "--last", "10m")
        nobody = gilscope("snapshot", url, "-p", "1")
        page = service.get("/report?form=html")
        landing = service.get("/")
    report = only_process(file.read_text())
    thread_s = scrape.total("gilscope_gil_thread_wait_seconds_total", pid=str(workload.pid))

    assert [0, 0] == [made.exit_code, screen.exit_code]
    assert truth.waiter.total.waits <= report["totals"]["waits"]
    assert report["totals"]["wait_s"] == pytest.approx(thread_s)
    assert "exact_count.py" == report["process"]["name"]
    assert f"pid {workload.pid}, CPython" in screen.output
    assert (15, "") == (nobody.exit_code, nobody.output)
    assert "answers 404: no such process is traced" in nobody.messages
    assert 'href="report"' in landing.text
    assert "<!doctype html>" in page.text
    worst = parse(page.text).one("section", id="moment")
    assert "When threads waited most" in worst.text
    assert 1 <= sum("waiter (" in row.text for row in worst.all("tr"))
    assert_fits_schema(json.loads(file.read_text()))
