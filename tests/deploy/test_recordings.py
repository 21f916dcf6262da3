"""Recordings in Prometheus: backfilled, pushed, and as a text file, each with the real program."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gilscope.reports.gil import openmetrics, prometheus
from support.commands.http_server import answer
from support.prometheus.monitoring import pushgateway, textfile_collector
from support.prometheus.rules import rules
from support.prometheus.server import Prometheus
from support.prometheus.server import prometheus as prometheus_server
from support.prometheus.tools import prometheus_tool
from support.recordings.gil import full_mode
from support.reports.scraped import Scrape, parse

_BEGAN_S, _ENDED_S = 1700000000.251, 1700000002.251
_RECORDING = replace(full_mode(), ended_ns=1_700_000_002_251_000_000, host="web-1")
_WAIT = "gilscope_gil_thread_wait_seconds_total"


@pytest.fixture(scope="module")
def backfilled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Make blocks of a recording, and let Prometheus serve them."""
    folder = tmp_path_factory.mktemp("backfilled")
    text, blocks = folder / "waits.om", folder / "blocks"
    text.write_text(openmetrics.render(_RECORDING))
    promtool = (prometheus_tool("promtool"), "tsdb", "create-blocks-from", "openmetrics")
    subprocess.run([*promtool, text, blocks], check=True, capture_output=True)
    with prometheus_server(blocks=blocks) as server:
        yield server


def _samples(server: Prometheus, expr: str, unix_s: float) -> list[dict[str, Any]]:
    answer = server.at(expr, unix_s)
    assert [] == answer.warnings
    return answer.series


@contextmanager
def _pushed(folder: Path, text: str) -> Iterator[tuple[int, str, Scrape]]:
    """Push *text* with curl; yields curl's exit code, what it says, and what is there then."""
    with pushgateway(folder) as address:
        url = f"http://{address}/metrics/job/gilscope-record/instance/web-1"
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--fail-with-body", "--data-binary", "@-", url],
            input=text.encode(),
            capture_output=True,
            check=False,
        )
        yield done.returncode, done.stdout.decode(), parse(answer(address, "/metrics")[1])


def _exported(folder: Path) -> Scrape:
    with textfile_collector(folder) as address:
        return parse(answer(address, "/metrics")[1])


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (f'sum by (instance) ({_WAIT}{{job="gilscope"}})', "1.94"),
        (f'{_WAIT}{{role="serve (app.py:8)"}}', "1.53"),
        (f'increase({_WAIT}{{role="serve (app.py:8)"}}[1m])', "1.53"),
        (f'rate({_WAIT}{{role="serve (app.py:8)"}}[2001ms])', str(1.53 / 2.001)),
        ("gilscope_gil_convoy_waits_total", "100"),
        ('gilscope_gil_wait_seconds_bucket{after="blocking_call",le="0.001048576"}', "25"),
        ('gilscope_gil_held_seconds_total{window="full"}', "1.8"),
        ("gilscope_gil_waiting_threads", "1"),
    ],
)
def test_backfilled_figures_are_those_of_the_recording(
    backfilled: Prometheus, expr: str, value: str
) -> None:
    """
    At its end all is there, and the increase since its beginning is all of it.
    """
    (sample,) = _samples(backfilled, expr, _ENDED_S)

    assert pytest.approx(float(value)) == float(sample["value"][1])
    assert "web-1" == sample["metric"]["instance"]


def test_backfilled_figures_begin_at_zero(backfilled: Prometheus) -> None:
    """
    And there are none before.
    """
    (sample,) = _samples(backfilled, "gilscope_gil_convoy_waits_total", _BEGAN_S)

    assert "0" == sample["value"][1]
    assert [] == _samples(backfilled, "gilscope_gil_convoy_waits_total", 1700000000)


def test_increase_goes_on_behind_the_end(backfilled: Prometheus) -> None:
    """
    As the documentation says, Prometheus adds half of what came between two points on average.
    """
    (sample,) = _samples(backfilled, "increase(gilscope_gil_convoy_waits_total[1m])", 1700000030)

    assert pytest.approx(150) == float(sample["value"][1])


def test_recorded_rules_can_be_asked_of_it(backfilled: Prometheus) -> None:
    """
    The expressions of the rules about the GIL yield what the recording says.
    """
    rule = next(r for r in rules() if r.name == "process:gilscope_gil_convoy_waits:rate5m")
    (sample,) = _samples(backfilled, rule.expr, _ENDED_S)

    assert pytest.approx(100 / 300) == float(sample["value"][1])
    assert {"job", "instance"} <= sample["metric"].keys()


def test_pushed_figures_are_those_of_the_recording(tmp_path: Path) -> None:
    """
    The Pushgateway takes the text format, and has every sample of it.
    """
    text = prometheus.render(_RECORDING)
    with _pushed(tmp_path, text) as (code, said, there):
        assert (0, "") == (code, said)
        pushed = {"job": "gilscope-record", "instance": "web-1"}
        expected = [s for family in parse(text).families for s in family.samples]
        assert [] == [s for s in expected if s.value != there.value(s.name, **s.labels, **pushed)]


def test_times_cannot_be_pushed(tmp_path: Path) -> None:
    """
    The Pushgateway refuses OpenMetrics with times, which is why there are two formats.
    """
    with _pushed(tmp_path, openmetrics.render(_RECORDING)) as (code, said, there):
        assert 0 != code
        assert "timestamp" in said
        assert [] == there.samples(_WAIT)


def test_text_file_is_exported(tmp_path: Path) -> None:
    """
    The textfile collector of node_exporter has every sample, and no error.
    """
    text = prometheus.render(_RECORDING)
    tmp_path.joinpath("gilscope.prom").write_text(text)
    exported = _exported(tmp_path)

    expected = [s for family in parse(text).families for s in family.samples]
    assert [] == [s for s in expected if s.value != exported.value(s.name, **s.labels)]
    assert 0 == exported.value("node_textfile_scrape_error")


def test_times_cannot_be_in_a_text_file(tmp_path: Path) -> None:
    """
    The textfile collector refuses them likewise.
    """
    tmp_path.joinpath("gilscope.prom").write_text(openmetrics.render(_RECORDING))
    exported = _exported(tmp_path)

    assert 1 == exported.value("node_textfile_scrape_error")
    assert [] == exported.samples(_WAIT)


def test_promtool_finds_nothing_in_the_text_format() -> None:
    """
    Names, types and help texts are as Prometheus' linter wants them.
    """
    done = subprocess.run(
        [prometheus_tool("promtool"), "check", "metrics"],
        input=prometheus.render(_RECORDING),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stdout + done.stderr)
