"""From contention to a notification: real Prometheus, real Alertmanager, and the shipped rules."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from gilscope import __home__
from support.commands.gilscope import eventually
from support.commands.serve import serving
from support.prometheus.monitoring import Webhook, alertmanager, webhook
from support.prometheus.rules import RULES, quickened, rules
from support.prometheus.server import Prometheus, prometheus, scraping
from support.stm_log.program import played_log

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_EXAMPLES = RULES.parents[1] / "docs" / "examples"
_SILENT = {
    # Nothing was ever lost.
    "process:gilscope_lost_events:ratio_rate5m",
    # No process runs transactions.
    "log:gilscope_stm_observed_seconds:rate5m",
    # Nobody has asked for locks.
    "process:gilscope_lock_observed:ratio_rate5m",
    "process:gilscope_lock_processes:rate5m",
    "process:gilscope_lock_wait_seconds:rate5m",
    "process:gilscope_lock_place_wait_seconds:rate5m",
    "process:gilscope_world_stopped_seconds:rate5m",
    "process:gilscope_world_stopping_seconds:rate5m",
    # No service measures its requests; see test_dashboard_requests.py.
    "route:gilscope_request_gil_wait:ratio_rate5m",
    "route:gilscope_requests:rate5m",
}
"""There are no such series here."""


@dataclass(frozen=True, slots=True)
class _Monitored:
    """The server of docs/convoy.md, not fixed, as Prometheus and Alertmanager see it."""

    pid: int
    port: str
    prometheus: Prometheus
    hook: Webhook


@contextmanager
def _example(name: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = [_PYTHON, str(_EXAMPLES / name), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Monitored]:
    """Serve the server, and a log of transactions, to the rules with short durations."""
    folder = tmp_path_factory.mktemp("monitoring")
    files = [folder / path.name for path in sorted(RULES.glob("*.yml"))]
    for file in files:
        file.write_text(quickened((RULES / file.name).read_text()))
    log = folder / "app.stm"
    log.write_bytes(played_log("C7", 2000).content)
    with (
        _example("quotes_before.py") as server,
        serving("-p", str(server.pid), "--stm-log", str(log)) as service,
        webhook() as hook,
        alertmanager(folder, hook) as alerts_to,
        prometheus(
            scraping(f"{service.host}:{service.port}"), rules=files, alerts_to=alerts_to
        ) as watcher,
    ):
        assert server.stdout is not None
        yield _Monitored(server.pid, server.stdout.readline().strip(), watcher, hook)


def test_convoy_is_notified_and_so_is_its_end(monitored: _Monitored) -> None:
    """
    While clients ask the server the alert arrives, with the holder; when they stop, its end does.
    """
    with _example("quotes_client.py", monitored.port):
        firing = monitored.hook.receives("GilscopeGilConvoy", "firing")
    resolved = monitored.hook.receives("GilscopeGilConvoy", "resolved")

    expected = {"severity": "warning", "process": "quotes_before.py", "pid": str(monitored.pid)}
    assert expected.items() <= firing["labels"].items()
    assert firing["labels"] == resolved["labels"]
    assert firing["startsAt"] == resolved["startsAt"] < resolved["endsAt"]
    assert (
        f"{__home__}/blob/main/docs/runbooks/gil-convoy.md" == firing["annotations"]["runbook_url"]
    )
    assert re.fullmatch(
        rf"quotes_before\.py \(pid {monitored.pid} at 127\.0\.0\.1:\d+\): [\d.]+ times a second a "
        r"thread comes back from a blocking call and waits for the GIL for a switch interval "
        r"\(5 ms, if it has no such interval\) or longer, in all processes of its name together\. "
        r"For [\d.]+% of that the holder is in (compute_price|refresh_prices) "
        r"\(quotes_before\.py:\d+\)\."
        # On a machine that others use too.
        r"( For [\d.]+% of the time lost the state of the holder is no_cpu\.)?",
        firing["annotations"]["description"],
    )


def test_every_rule_can_be_evaluated(monitored: _Monitored) -> None:
    """
    Prometheus evaluates every rule without an error, and all figures are recorded.
    """
    recorded = {rule.name for rule in rules() if not rule.is_alert} - _SILENT

    def missing() -> list[str]:
        answers = {name: monitored.prometheus.now(name) for name in sorted(recorded)}
        assert [] == [warning for answer in answers.values() for warning in answer.warnings]
        return [name for name, answer in answers.items() if not answer.series]

    eventually(lambda: not missing(), within_s=20)
    evaluated = monitored.prometheus.rules()
    assert {rule.name for rule in rules()} == {rule["name"] for rule in evaluated}
    assert [] == [rule for rule in evaluated if rule["health"] != "ok" or rule.get("lastError")]
