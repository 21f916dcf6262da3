"""Starts Prometheus and what belongs to it, each on a free port of the loopback."""

import http.client
import json
import queue
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from live.gilscope_command import eventually
from prometheus_tools import alertmanager_command, prometheus_tool

__all__ = [
    "Alert",
    "Prometheus",
    "Webhook",
    "alertmanager",
    "answer",
    "prometheus",
    "prometheus_of",
    "pushgateway",
    "textfile_collector",
    "webhook",
]

_HOST = "127.0.0.1"
_PATIENCE_S = 45.0

Alert = Mapping[str, Any]
"""As Alertmanager's webhooks have it."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver of notifications."""

    url: str
    _alerts: "queue.SimpleQueue[Alert]" = field(default_factory=queue.SimpleQueue)

    def receives(self, name: str, status: str) -> Alert:
        """Return the next alert of that name and status, waiting for it; others are dropped.

        Raises queue.Empty if nothing comes for long.
        """
        while True:
            alert = self._alerts.get(timeout=_PATIENCE_S)
            if (name, status) == (alert["labels"]["alertname"], alert["status"]):
                return alert


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus."""

    address: str

    def query(self, expr: str, at: str = "") -> list[Mapping[str, Any]]:
        """Return the samples that *expr* yields now, or at the time *at*; fails on warnings."""
        time = f"&time={at}" if at else ""
        found = self._api(f"query?query={quote(expr)}{time}")
        assert "warnings" not in found, found
        result: list[Mapping[str, Any]] = found["data"]["result"]
        return result

    def rules(self) -> list[Mapping[str, Any]]:
        """Return the state of all rules."""
        groups = self._api("rules")["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _api(self, path: str) -> dict[str, Any]:
        status, text = answer(self.address, f"/api/v1/{path}")
        assert 200 == status, text
        found: dict[str, Any] = json.loads(text)
        assert "success" == found["status"], text
        return found


@contextmanager
def webhook() -> Iterator[Webhook]:
    """Receive notifications until the block has ended."""

    class Handler(BaseHTTPRequestHandler):
        """Says yes to whatever it is told."""

        def do_POST(self) -> None:
            """Take the alerts of a notification."""
            length = int(self.headers["Content-Length"])
            for alert in json.loads(self.rfile.read(length))["alerts"]:
                received.put(alert)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
            """Say nothing."""

    received: queue.SimpleQueue[Alert] = queue.SimpleQueue()
    with ThreadingHTTPServer((_HOST, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Webhook(f"http://{_HOST}:{server.server_port}/", received)
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def alertmanager(folder: Path, hook: Webhook) -> Iterator[str]:
    """Notify *hook* of alerts and of their ends at once; yields the address to send alerts to."""
    receiver = {
        "name": "hook",
        "webhook_configs": [{"url": hook.url, "send_resolved": True}],
    }
    route = {
        "receiver": "hook",
        "group_by": ["..."],
        "group_wait": "0s",
        "group_interval": "1s",
        "repeat_interval": "1h",
    }
    config = _written(folder / "alertmanager.yml", {"route": route, "receivers": [receiver]})
    address = _free_address()
    command = (
        *alertmanager_command(),
        f"--config.file={config}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    )
    with _running(command, address, folder / "alertmanager.log"):
        yield address


@contextmanager
def prometheus(
    folder: Path, target: str, alerts_to: str, rules: Sequence[Path]
) -> Iterator[Prometheus]:
    """Scrape *target* and evaluate *rules* each second, and send alerts to *alerts_to*."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path) for path in rules],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alerts_to]}]}]},
        "scrape_configs": [{"job_name": "gilscope", "static_configs": [{"targets": [target]}]}],
    }
    with _prometheus(folder, config, folder / "prometheus") as server:
        yield server


@contextmanager
def prometheus_of(folder: Path, blocks: Path) -> Iterator[Prometheus]:
    """Serve the folder *blocks*, which promtool has made, and scrape nothing."""
    with _prometheus(folder, {}, blocks) as server:
        yield server


@contextmanager
def pushgateway(folder: Path) -> Iterator[str]:
    """Take what is pushed; yields the address."""
    address = _free_address()
    command = (prometheus_tool("prometheus-pushgateway"), f"--web.listen-address={address}")
    with _running(command, address, folder / "pushgateway.log"):
        yield address


@contextmanager
def textfile_collector(folder: Path) -> Iterator[str]:
    """Export the files in *folder*, and nothing else, as node_exporter does; yields the address."""
    address = _free_address()
    command = (
        prometheus_tool("prometheus-node-exporter"),
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={folder}",
        f"--web.listen-address={address}",
    )
    with _running(command, address, folder / "node_exporter.log", ready="/metrics"):
        yield address


def answer(address: str, path: str) -> tuple[int, str]:
    """Return the status and the text of the page at *path*."""
    connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@contextmanager
def _prometheus(folder: Path, config: Mapping[str, object], storage: Path) -> Iterator[Prometheus]:
    address = _free_address()
    command = (
        prometheus_tool("prometheus"),
        f"--config.file={_written(folder / 'prometheus.yml', config)}",
        f"--storage.tsdb.path={storage}",
        f"--web.listen-address={address}",
    )
    with _running(command, address, folder / "prometheus.log"):
        yield Prometheus(address)


def _written(path: Path, content: object) -> Path:
    path.write_text(yaml.safe_dump(content))
    return path


def _free_address() -> str:
    # Neither program takes port 0 and tells which one it got.
    with socket.create_server((_HOST, 0)) as taken:
        return f"{_HOST}:{taken.getsockname()[1]}"


@contextmanager
def _running(
    command: Sequence[str], address: str, log: Path, ready: str = "/-/ready"
) -> Iterator[None]:
    with (
        log.open("w") as said,
        subprocess.Popen(command, stdout=said, stderr=said) as process,
    ):

        def is_ready() -> bool:
            assert process.poll() is None, log.read_text()
            return _answers(address, ready)

        try:
            eventually(is_ready, within_s=_PATIENCE_S)
            yield
            process.terminate()
            process.wait(_PATIENCE_S)
        finally:
            process.kill()


def _answers(address: str, path: str) -> bool:
    try:
        return 200 == answer(address, path)[0]
    except ConnectionError:
        return False
