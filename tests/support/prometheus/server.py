"""Starts a Prometheus that scrapes agents and may evaluate rules, and asks it."""
# ruff: noqa: S310 - all URLs are http ones of the server that is started here

import json
import math
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support.commands.http_server import free_address, ready_server
from support.prometheus.tools import prometheus_tool

__all__ = ["Answer", "Prometheus", "prometheus", "scraping"]

_PATIENCE_S = 30.0
_EXEMPLARS_S = 300


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
        return self.at(expr, time.time())

    def at(self, expr: str, unix_s: float) -> Answer:
        """Return the value of *expr* at that time."""
        return self._answer("query", query=expr, time=unix_s)

    def over(self, expr: str, seconds: float) -> Answer:
        """Return the values of *expr* in the last *seconds*, one a second."""
        now_s = time.time()
        return self._answer("query_range", query=expr, start=now_s - seconds, end=now_s, step="1s")

    def label_values(self, label: str, selector: str) -> list[str]:
        """Return the values of *label* in the series that *selector* selects."""
        values: list[str] = self._get(f"label/{label}/values", {"match[]": selector})["data"]
        return values

    def exemplars(self, selector: str) -> list[dict[str, Any]]:
        """Return the exemplars of the last minutes of the series that *selector* selects."""
        now_s = time.time()
        parameters = {"query": selector, "start": now_s - _EXEMPLARS_S, "end": now_s + 1}
        found = self._get("query_exemplars", parameters)["data"]
        return [exemplar for series in found for exemplar in series["exemplars"]]

    def rules(self) -> list[Mapping[str, Any]]:
        """Return the state of all rules."""
        groups = self._get("rules", {})["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

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


def scraping(
    target: str, job: str = "gilscope", labels: Mapping[str, str] | None = None, **options: object
) -> Mapping[str, object]:
    """Return the configuration of a job that scrapes *target* and adds *labels*."""
    static = {"targets": [target], "labels": dict(labels or {})}
    return {"job_name": job, "static_configs": [static], **options}


@contextmanager
def prometheus(
    *jobs: Mapping[str, object],
    rules: Sequence[Path] = (),
    alerts_to: str | None = None,
    blocks: Path | None = None,
    features: Sequence[str] = (),
) -> Iterator[Prometheus]:
    """Scrape every second what *jobs* say.

    Files of *rules* are evaluated as often, and alerts are sent to the address *alerts_to*. What
    is known from before may lie in the folder *blocks*, which promtool has made. *features* are
    those that have to be enabled by name.
    """
    managers = [] if alerts_to is None else [{"static_configs": [{"targets": [alerts_to]}]}]
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path) for path in rules],
        "alerting": {"alertmanagers": managers},
        "scrape_configs": list(jobs),
    }
    address = free_address()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "prometheus.yml")
        file.write_text(yaml.safe_dump(configuration))
        command = (
            prometheus_tool("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={blocks or Path(folder, 'data')}",
            f"--web.listen-address={address}",
            *(f"--enable-feature={each}" for each in features),
        )
        with ready_server(command, address, Path(folder, "log")):
            yield Prometheus(f"http://{address}")
