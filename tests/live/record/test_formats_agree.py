"""All formats of one recording have the same figures, however busy the process was at its end."""

import html
import re
from collections.abc import Mapping
from typing import Any

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope
from support.commands.json_reports import only_process
from support.reports.scraped import Scrape, parse

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_FORMS = ("text", "json", "html", "prometheus")
_TIMES = 1e-9 * 200
"""What the sum of so many rounded seconds may be off."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One recording of a hundred threads in each of the forms."""
    folder = tmp_path_factory.mktemp("crowd")
    words = [f"--format={form}={folder / form}" for form in _FORMS]
    with started(["/usr/bin/python3"], "crowd.py") as workload:
        outcome = gilscope("record", "-p", str(workload.pid), "-d", "2", *words)
    assert 0 == outcome.exit_code, outcome.messages
    return {form: (folder / form).read_text() for form in _FORMS}


@pytest.fixture(scope="module")
def report(files: dict[str, str]) -> dict[str, Any]:
    """What the JSON says of the process."""
    return only_process(files["json"])


@pytest.fixture(scope="module")
def scrape(files: dict[str, str]) -> Scrape:
    """What the metrics say."""
    return parse(files["prometheus"])


@pytest.fixture(scope="module")
def page(files: dict[str, str]) -> str:
    """The words of the HTML report."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", files["html"])).split())


def _finished(interpreter: Mapping[str, Any]) -> float:
    return sum(float(waits["wait_s"]) for waits in interpreter["waits"].values())


def test_json_agrees_with_itself(report: dict[str, Any]) -> None:
    """
    Threads, edges, interpreters and histograms have been read at one instant.
    """
    totals, threads = report["totals"], report["threads"]
    (gil,) = report["interpreters"]
    exact = pytest.approx(totals["wait_s"], abs=_TIMES)

    assert 100 <= len(threads)
    assert min(totals["waits"], totals["drop_requests"], totals["convoy_waits"]) > 0
    assert exact == sum(thread["wait_s"] for thread in threads)
    assert exact == sum(edge["wait_s"] for edge in report["edges"])
    assert totals["waits"] == sum(thread["waits"] for thread in threads)
    assert totals["waits"] == sum(waits["waits"] for waits in gil["waits"].values())
    assert totals["waits"] == _count(report["histograms"]["wait"])
    for name in ("convoy_waits", "forced_switches", "drop_requests"):
        assert totals[name] == gil[name]
    assert totals["forced_switches"] == sum(thread["forced_switches"] for thread in threads)
    assert totals["convoy_waits"] == sum(
        thread["kinds"].get("GIL_CONVOY", {"waits": 0})["waits"] for thread in threads
    )


def _count(histogram: Any) -> int:
    return sum(count for _, count in histogram)


def test_text_and_html_have_its_figures(
    files: dict[str, str], report: dict[str, Any], page: str
) -> None:
    """
    To the digits that they show.
    """
    totals = report["totals"]
    lost, waits = f"{totals['wait_s']:.3f}", totals["waits"]
    slow = report["slow_drops"][0]

    assert f"{lost}s lost waiting for the GIL in {waits} waits" in files["text"]
    assert f"Drop requests: {totals['drop_requests']}, drop latency p50" in files["text"]
    assert f" lost waiting {lost} s in {waits} finished waits " in page
    assert f" convoy waits {totals['convoy_waits']} after a blocking call" in page
    assert f"{slow['drop_latency_s']:.3f}" in files["text"]
    assert f"{slow['drop_latency_s']:.3f} s" in page


def test_metrics_have_its_figures(report: dict[str, Any], scrape: Scrape) -> None:
    """
    Sums over all labels are the totals.
    """
    totals = report["totals"]
    (gil,) = report["interpreters"]
    exact = pytest.approx(totals["wait_s"], abs=_TIMES)

    assert exact == scrape.total("gilscope_gil_thread_wait_seconds_total")
    assert exact == scrape.total("gilscope_gil_blocked_seconds_total")
    assert exact == scrape.total("gilscope_gil_holder_seconds_total")
    assert pytest.approx(_finished(gil), abs=_TIMES) == scrape.total(
        "gilscope_gil_wait_seconds_sum"
    )
    assert totals["waits"] == scrape.total("gilscope_gil_wait_seconds_count")
    assert totals["waits"] == scrape.total("gilscope_gil_thread_waits_total")
    assert totals["convoy_waits"] == scrape.total("gilscope_gil_convoy_waits_total")
    assert totals["forced_switches"] == scrape.total("gilscope_gil_forced_switches_total")
    assert totals["drop_requests"] == scrape.total("gilscope_gil_drop_requests_total")
    assert totals["held_s"] == scrape.total("gilscope_gil_held_seconds_total")
    assert pytest.approx(sum(drop["drop_latency_s"] for drop in report["slow_drops"])) == (
        scrape.total("gilscope_gil_slow_drop_seconds_total")
    )
    assert sum(drop["requests"] for drop in report["slow_drops"]) == scrape.total(
        "gilscope_gil_slow_drops_total"
    )


def test_all_name_the_same_place_first(
    files: dict[str, str], report: dict[str, Any], page: str, scrape: Scrape
) -> None:
    """
    With the same time and share.
    """
    row = re.search(
        r"Whose code kept the GIL\n +([0-9.]+)s +([0-9]+) % +(\S+ \(\S+\))", files["text"]
    )
    assert row is not None
    lost_s, share, place = row.groups()
    by_metrics_s = sum(
        sample.value
        for sample in scrape.samples("gilscope_gil_holder_seconds_total")
        if sample.labels["holder"] == place
    )

    assert pytest.approx(float(lost_s), abs=0.001) == by_metrics_s
    assert (
        f" {lost_s} s, {share} % of the time lost, went to waits while {place} kept the GIL" in page
    )
    assert float(share) == pytest.approx(100 * float(lost_s) / report["totals"]["wait_s"], abs=0.6)
