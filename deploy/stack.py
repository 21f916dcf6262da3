"""Shows gilscope in production: Prometheus scrapes it, rules raise an alert, Alertmanager has it.

Runs the program of ``make demo``, ``gilscope serve`` on it, and Prometheus and Alertmanager from
the distribution's packages, all on the loopback, until Ctrl-C or ``--seconds``. The rules about the
GIL have durations of seconds here, so that nobody has to wait for a quarter of an hour.
"""

import argparse
import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo import GILSCOPE, HOST, convoy, ending, free_port, page, say

_ROOT = Path(__file__).resolve().parents[1]
_RULES = _ROOT / "dashboards" / "rules"
_TOOLS = _ROOT / ".cache" / "tools" / "usr"
_PORTS = {"gilscope": 9845, "prometheus": 9090, "alertmanager": 9093}
_LOOK_S = 0.5
_PATIENCE_S = 60.0
_LAST_LINES = 10


class StackFailed(Exception):
    """Something did not start, or has ended."""


@dataclass(frozen=True, slots=True)
class _Service:
    """A program that runs."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise StackFailed if it has ended."""
        if self.process.poll() is not None:
            said = self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
            raise StackFailed("\n".join((f"{self.name} has ended:", *said)))


def main() -> int:
    """Run everything and return the exit code."""
    parser = argparse.ArgumentParser(description="Show gilscope with Prometheus and Alertmanager.")
    parser.add_argument("--seconds", type=float, help="end after so many seconds; default: Ctrl-C")
    seconds = parser.parse_args().seconds
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    deadline_s = time.monotonic() + seconds if seconds else float("inf")
    try:
        with _stack(stopped, ending(seconds)) as (addresses, services):
            _watch(addresses["alertmanager"], services, stopped, deadline_s)
    except StackFailed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 0


@contextlib.contextmanager
def _stack(
    stopped: threading.Event, ends: str
) -> Iterator[tuple[Mapping[str, str], Sequence[_Service]]]:
    """Start everything; yields the addresses and what runs."""
    addresses = {name: f"{HOST}:{free_port(port)}" for name, port in _PORTS.items()}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gilscope-stack-")))
        pid = stack.enter_context(convoy())
        commands = {
            "gilscope": (*GILSCOPE, "serve", "-p", str(pid), "--listen", addresses["gilscope"]),
            "alertmanager": _alertmanager(folder, addresses),
            "prometheus": _prometheus(folder, addresses),
        }
        services = [
            stack.enter_context(_running(name, command, folder))
            for name, command in commands.items()
        ]
        for service, ready in zip(services, ("/healthz", "/-/ready", "/-/ready"), strict=True):
            _wait(service, f"http://{addresses[service.name]}{ready}", stopped)
        if not stopped.is_set():
            say(_announcement(addresses, pid, ends))
        yield addresses, services


def _announcement(addresses: Mapping[str, str], pid: int, ends: str) -> str:
    # Debian's Prometheus has the older pages only, and its Alertmanager none at all.
    urls = [f"http://{addresses['prometheus']}/{path}" for path in ("classic/alerts", "alerts")]
    alerts = next((url for url in urls if page(url) is not None), urls[-1])
    return (
        f"All runs. {ends}\n"
        f"gilscope watches process {pid}: http://{addresses['gilscope']}/\n"
        f"Prometheus scrapes it every second: {alerts}\n"
        f"Alertmanager is told of alerts: http://{addresses['alertmanager']}/api/v2/alerts\n"
        "The rules are those of dashboards/rules; those about the GIL have seconds for minutes,\n"
        "so the first alert comes within half a minute. Dashboards for a Grafana of yours are in\n"
        "dashboards/grafana."
    )


def _alertmanager(folder: Path, addresses: Mapping[str, str]) -> Sequence[str]:
    # Nobody is told: what it knows is on its page.
    route = {"receiver": "nobody", "group_wait": "1s"}
    config = _written(folder, "alertmanager", {"route": route, "receivers": [{"name": "nobody"}]})
    return (
        *_program("prometheus-alertmanager"),
        f"--config.file={config}",
        f"--storage.path={folder / 'notifications'}",
        f"--web.listen-address={addresses['alertmanager']}",
        "--cluster.listen-address=",
    )


def _prometheus(folder: Path, addresses: Mapping[str, str]) -> Sequence[str]:
    rules = folder / "rules"
    rules.mkdir()
    for file in _RULES.glob("*.yml"):
        text = file.read_text()
        # What an agent costs in its first seconds is not what it costs.
        rules.joinpath(file.name).write_text(_quickened(text) if file.stem == "gil" else text)
    alerts_to = [{"static_configs": [{"targets": [addresses["alertmanager"]]}]}]
    targets = [{"targets": [addresses["gilscope"]]}]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules / "*.yml")],
        "alerting": {"alertmanagers": alerts_to},
        "scrape_configs": [{"job_name": "gilscope", "static_configs": targets}],
    }
    return (
        *_program("prometheus"),
        f"--config.file={_written(folder, 'prometheus', config)}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address={addresses['prometheus']}",
    )


def _quickened(rules: str) -> str:
    return re.sub(r"(?m)^( +for: )\d+m$", r"\g<1>3s", rules.replace("[5m]", "[10s]"))


def _written(folder: Path, name: str, config: object) -> Path:
    # JSON is YAML.
    path = folder / f"{name}.yml"
    path.write_text(json.dumps(config))
    return path


def _program(name: str) -> Sequence[str]:
    found = shutil.which(name)
    if found is not None:
        return (found,)
    fetched = _TOOLS / "bin" / name
    if not fetched.exists():
        raise StackFailed(f"there is no {name}: `make setup` says why it could not be fetched")
    # Debian's look for templates below /usr/share, where they are not if they are unpacked alone.
    bind = 'mount --bind "$0" /usr/share && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", bind, str(_TOOLS / "share"), str(fetched))


@contextlib.contextmanager
def _running(name: str, command: Sequence[str], folder: Path) -> Iterator[_Service]:
    log = folder / f"{name}.log"
    # A process group of its own: Ctrl-C is for this program, which ends the rest in order.
    with (
        log.open("wb") as said,
        subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True) as process,
    ):
        try:
            yield _Service(name, process, log)
        finally:
            process.terminate()


def _wait(service: _Service, url: str, stopped: threading.Event) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while page(url) is None and not stopped.wait(_LOOK_S):
        service.check()
        if time.monotonic() > deadline_s:
            raise StackFailed(f"{service.name} does not answer at {url}")


def _watch(
    alertmanager: str, services: Sequence[_Service], stopped: threading.Event, deadline_s: float
) -> None:
    """Say what fires until the end."""
    told: set[str] = set()
    while time.monotonic() < deadline_s and not stopped.wait(_LOOK_S):
        for service in services:
            service.check()
        alerts = json.loads(page(f"http://{alertmanager}/api/v2/alerts?active=true") or b"[]")
        for alert in alerts:
            name, notes = alert["labels"]["alertname"], alert["annotations"]
            if alert["fingerprint"] not in told:
                told.add(alert["fingerprint"])
                say(f"Alert: {name}\n{notes['description']}\nWhat to do: {notes['runbook_url']}")


if __name__ == "__main__":
    sys.exit(main())
