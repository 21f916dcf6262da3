"""All formats of one recording have the same figures, however busy the process was at its end."""

import html
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope
from support.commands.json_reports import only_process
from support.reports.pprof import read
from support.reports.scraped import OPEN_METRICS, Scrape, parse
from support.reports.sums import by_label, exact, functions, innermost, of_holder, of_role

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_TEXTS = ("text", "json", "html", "prometheus", "openmetrics", "collapsed", "speedscope")
_LEAST_S = 0.001
"""What is less is told as less."""
_OF_BACKFILL = ("job", "instance")
"""Labels that Prometheus gives to what it scrapes."""
_TIMES = 1e-9 * 200
"""What the sum of so many rounded seconds may be off."""


@pytest.fixture(scope="module", params=["contention", "full"])
def mode(request: pytest.FixtureRequest) -> str:
    """How closely the threads are looked at."""
    return str(request.param)


@pytest.fixture(scope="module")
def folder(mode: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recording of a hundred threads in each of the forms."""
    folder = tmp_path_factory.mktemp("crowd")
    words = [f"--format={form}={folder / form}" for form in (*_TEXTS, "pprof")]
    with started(["/usr/bin/python3"], "crowd.py") as workload:
        pid = str(workload.pid)
        outcome = gilscope("record", "-p", pid, "-d", "2", "--mode", mode, *words)
    assert 0 == outcome.exit_code, outcome.messages
    return folder


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, str]:
    """Those of them that are text."""
    return {form: (folder / form).read_text() for form in _TEXTS}


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
    held = by_label(scrape, "gilscope_gil_held_seconds_total", "window")
    assert totals["held_s"] == held["all"]
    assert pytest.approx(sum(drop["drop_latency_s"] for drop in report["slow_drops"])) == (
        scrape.total("gilscope_gil_slow_drop_seconds_total")
    )
    assert sum(drop["requests"] for drop in report["slow_drops"]) == scrape.total(
        "gilscope_gil_slow_drops_total"
    )


def test_profile_has_its_figures(folder: Path, report: dict[str, Any]) -> None:
    """
    To the nanosecond, at both ends of the waits.
    """
    profile = read((folder / "pprof").read_bytes())
    edges, held_by = report["edges"], report["held_by"]

    assert round(1e9 * report["totals"]["wait_s"]) == profile.total("gil_wait")
    assert profile.total("gil_wait") == profile.total("gil_held_up")
    assert sum(edge["waits"] for edge in edges) == profile.total("gil_waits")
    assert round(1e9 * sum(held["held_s"] for held in held_by)) == profile.total("gil_hold")


@pytest.mark.skipif(shutil.which("go") is None, reason="Go, whose pprof it is, is not installed")
@pytest.mark.parametrize("kind", ["gil_wait", "gil_held_up"])
def test_gos_pprof_reads_them(folder: Path, report: dict[str, Any], kind: str) -> None:
    """
    It warns of nothing, and has the same sum.
    """
    words = ("go", "tool", "pprof", "-top", "-unit=ns", f"-sample_index={kind}")
    shown = subprocess.run(
        [*words, str(folder / "pprof")], capture_output=True, text=True, check=True
    )
    total = re.search(r"% of ([0-9]+)ns total", shown.stdout)

    assert "" == shown.stderr
    assert total is not None
    assert round(1e9 * report["totals"]["wait_s"]) == int(total[1])


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
    # The metrics tell the lines of a function apart.
    by_function = by_label(scrape, "gilscope_gil_holder_seconds_total", "holder", " (")

    assert lost_s == f"{by_function[place.partition(' ')[0]]:.3f}"
    assert (
        f" {lost_s} s, {share} % of the time lost, went to waits while {place} kept the GIL" in page
    )
    assert float(share) == pytest.approx(100 * float(lost_s) / report["totals"]["wait_s"], abs=0.6)


def test_roles_and_holders_have_the_same_losses_everywhere(
    report: dict[str, Any], scrape: Scrape, page: str
) -> None:
    """
    To the nanosecond in the metrics, and to the digits that the page shows.
    """
    roles, holders = of_role(report, "wait_s"), of_holder(report)
    by_role = by_label(scrape, "gilscope_gil_thread_wait_seconds_total", "role")
    by_holder = by_label(scrape, "gilscope_gil_holder_seconds_total", "holder", " (")

    assert {"serve", "compute", "hold"} == {role.partition(" ")[0] for role in roles}
    assert roles == by_role
    assert holders == by_holder
    words = page.replace(" (crowd. py:", " (crowd.py:")
    for lost in (*roles.values(), *holders.values()):
        assert f" {lost:.3f} s " in words or lost < _LEAST_S


def test_holds_are_the_same_everywhere(
    mode: str, files: dict[str, str], report: dict[str, Any], scrape: Scrape, page: str
) -> None:
    """
    In full mode; in contention mode none are seen, and none are told.
    """
    totals = report["totals"]
    by_role = by_label(scrape, "gilscope_gil_thread_hold_seconds_total", "role")
    if mode == "contention":
        assert (None, {}) == (totals["hold_s"], by_role)
        return
    finished = _count(report["histograms"]["hold"])
    (percents,) = re.findall(r"The GIL was held ([0-9]+) % of the time", files["text"])

    assert of_role(report, "hold_s") == by_role
    assert exact(totals["hold_s"]) == sum(map(exact, by_role.values()))
    assert totals["held_s"] == totals["hold_s"]
    assert finished == scrape.total("gilscope_gil_hold_seconds_count")
    assert f"in {finished} holds of" in files["text"]
    assert f" of the time held {percents} % in {finished} finished holds of" in page


def test_openmetrics_ends_with_the_same_samples(files: dict[str, str], scrape: Scrape) -> None:
    """
    What was counted up to the last of its times is what the other format has.
    """
    ended = parse(_last_moment(files["openmetrics"]), OPEN_METRICS)
    names = [name for name in scrape.names() if name.startswith("gilscope_gil_")]

    assert len(names) > 10
    for name in names:
        expected = Counter(map(_labelled, scrape.samples(name)))
        assert expected == Counter(map(_labelled, ended.samples(name))), name


def _last_moment(text: str) -> str:
    """Return *text* as of the last of its times: the library's parser takes no second one."""
    lines = text.splitlines()
    last = max(line.rpartition(" ")[2] for line in lines if not line.startswith("#"))
    kept = [line for line in lines if line.startswith("#") or line.endswith(f" {last}")]
    return "\n".join((*kept, ""))


def _labelled(sample: Any) -> tuple[Any, ...]:
    labels = {key: value for key, value in sample.labels.items() if key not in _OF_BACKFILL}
    return (*sorted(labels.items()), sample.value)


def test_flame_graphs_have_all_that_was_lost(files: dict[str, str], report: dict[str, Any]) -> None:
    """
    Once by those who waited and once by those who held, with the functions of each end.
    """
    ends = {
        end: functions(
            (innermost(report, edge[end]), exact(edge["wait_s"])) for edge in report["edges"]
        )
        for end in ("waiter", "holder")
    }
    lines = [line.rpartition(" ") for line in files["collapsed"].splitlines()]
    speedscope = json.loads(files["speedscope"])
    frames = speedscope["shared"]["frames"]

    for end, lost in ends.items():
        collapsed = functions(
            (stack.rpartition(";")[2].partition(" (")[0].strip("[]"), int(ns))
            for stack, _, ns in lines
            if stack.startswith(f"{end}s;")
        )
        (profile,) = [each for each in speedscope["profiles"] if each["name"] == f"{end}s"]
        weights = zip(profile["samples"], profile["weights"], strict=True)

        assert exact(report["totals"]["wait_s"]) == pytest.approx(sum(lost.values()), abs=200)
        assert lost == collapsed
        assert lost == functions(
            (frames[stack[-1]]["name"].strip("[]"), ns) for stack, ns in weights
        )
        assert profile["endValue"] == sum(lost.values())
