"""Starts a Prometheus that scrapes one agent, and asks it."""
# ruff: noqa: S310 - all URLs are http ones of the server that is started here

import json
import math
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from live.gilscope_command import eventually
from prometheus_tools import prometheus_tool

__all__ = ["Answer", "Prometheus", "prometheus"]

_PATIENCE_S = 30.0
_CONFIGURATION = """\
global:
  scrape_interval: 1s
scrape_configs:
"""
_JOB = """\
  - job_name: {job}
    static_configs:
      - targets: ['{target}']
        labels: {labels}
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What Prometheus says to a query."""

    series: list[dict[str, Any]]
    """Each with its labels under ``metric``."""
    warnings: list[str]
    """An error is one as well."""

    def values(self) -> list[float]:
        """Return all that are numbers: 0 divided by 0 is none."""
        points = (
            point for series in self.series for point in series.get("values", [series.get("value")])
        )
        numbers = (float(value) for _, value in points)
        return [number for number in numbers if not math.isnan(number)]

    def labels(self, name: str) -> set[str]:
        """Return the values of a label."""
        return {series["metric"].get(name, "") for series in self.series}


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running server."""

    url: str

    def now(self, expr: str) -> Answer:
        """Return the value of *expr* at this moment."""
        return self._answer("query", query=expr, time=time.time())

    def over(self, expr: str, seconds: float) -> Answer:
        """Return the values of *expr* in the last *seconds*, one a second."""
        now_s = time.time()
        return self._answer("query_range", query=expr, start=now_s - seconds, end=now_s, step="1s")

    def label_values(self, label: str, selector: str) -> list[str]:
        """Return the values of *label* in the series that *selector* selects."""
        values: list[str] = self._get(f"label/{label}/values", {"match[]": selector})["data"]
        return values

    def is_ready(self) -> bool:
        """Whether it answers queries."""
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=_PATIENCE_S):
                return True
        except urllib.error.URLError:
            return False

    def _answer(self, path: str, **parameters: object) -> Answer:
        answer = self._get(path, parameters)
        warnings = [*answer.get("warnings", []), *filter(None, [answer.get("error")])]
        return Answer(answer.get("data", {}).get("result", []), warnings)

    def _get(self, path: str, parameters: Mapping[str, object]) -> dict[str, Any]:
        question = urllib.parse.urlencode(parameters)
        url = f"{self.url}/api/v1/{path}?{question}"
        try:
            with urllib.request.urlopen(url, timeout=_PATIENCE_S) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            content = error.read()
        found: dict[str, Any] = json.loads(content)
        return found


@contextmanager
def prometheus(
    target: str, jobs: Mapping[str, Mapping[str, str]], options: Mapping[str, str] | None = None
) -> Iterator[Prometheus]:
    """Scrape *target* every second for each of *jobs*, which have labels of their own.

    *options* are lines of configuration for some of them.
    """
    program = prometheus_tool("prometheus")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder, "prometheus.yml")
        scraped = (
            _JOB.format(job=job, target=target, labels=json.dumps(labels))
            + (options or {}).get(job, "")
            for job, labels in jobs.items()
        )
        configuration.write_text("".join([_CONFIGURATION, *scraped]))
        command = [
            program,
            f"--config.file={configuration}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={address}",
            "--log.level=error",
        ]
        with subprocess.Popen(command) as process:
            try:
                server = Prometheus(f"http://{address}")
                eventually(server.is_ready)
                yield server
            finally:
                process.terminate()
