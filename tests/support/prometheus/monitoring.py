"""Starts what belongs to Prometheus, each on a free port of the loopback."""

import json
import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from support.commands.http_server import HOST, free_address, ready_server
from support.prometheus.tools import alertmanager_command, prometheus_tool

__all__ = [
    "Alert",
    "Webhook",
    "alertmanager",
    "pushgateway",
    "textfile_collector",
    "webhook",
]

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
    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Webhook(f"http://{HOST}:{server.server_port}/", received)
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
    config = folder / "alertmanager.yml"
    config.write_text(yaml.safe_dump({"route": route, "receivers": [receiver]}))
    address = free_address()
    command = (
        *alertmanager_command(),
        f"--config.file={config}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    )
    with ready_server(command, address, folder / "alertmanager.log"):
        yield address


@contextmanager
def pushgateway(folder: Path) -> Iterator[str]:
    """Take what is pushed; yields the address."""
    address = free_address()
    command = (prometheus_tool("prometheus-pushgateway"), f"--web.listen-address={address}")
    with ready_server(command, address, folder / "pushgateway.log"):
        yield address


@contextmanager
def textfile_collector(folder: Path) -> Iterator[str]:
    """Export the files in *folder*, and nothing else, as node_exporter does; yields the address."""
    address = free_address()
    command = (
        prometheus_tool("prometheus-node-exporter"),
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={folder}",
        f"--web.listen-address={address}",
    )
    with ready_server(command, address, folder / "node_exporter.log", page="/metrics"):
        yield address
