"""Starts the Prometheus that a fleet is scraped by, and asks what it takes."""
# ruff: noqa: S310 - all URLs are http ones of the server that is started here

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.served import Figures

from support.commands.http_server import free_address, ready_server
from support.prometheus.tools import prometheus_tool

__all__ = ["Asked", "Question", "Server", "configuration", "serving", "version"]

_WITHIN_S = 120.0
_GROUP = re.compile(r".*;(.*)")


@dataclass(frozen=True, slots=True)
class Question:
    """A query of a dashboard, as Grafana sends it with everything chosen."""

    dashboard: str
    panel: str
    expr: str
    is_instant: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a query."""

    question: Question
    took_s: float
    series: int
    error: str = ""


class Server:
    """A running Prometheus."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        """Where it keeps its data."""

    def figures(self) -> Figures:
        """Return what it exports about itself."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=_WITHIN_S) as answer:
            return Figures(answer.read().decode())

    def group_seconds(self) -> dict[str, float]:
        """Return how long the last evaluation of each rule group took, by its name."""
        found = self.figures().samples("prometheus_rule_group_last_duration_seconds")
        return {_GROUP.sub(r"\1", each.labels["rule_group"]): each.value for each in found}

    def count(self, expr: str) -> int:
        """Return the number of series that *expr* has now."""
        return self.ask(Question("", "", expr, is_instant=True), 0, 1).series

    def ask(self, question: Question, range_s: float, step_s: int) -> Asked:
        """Return what it takes to answer: for now, or over the last *range_s* by steps."""
        now_s = time.time()
        asked: Mapping[str, object] = {"query": question.expr, "time": now_s}
        if not question.is_instant:
            span = {"start": now_s - range_s, "end": now_s, "step": step_s}
            asked = {"query": question.expr, **span}
        path = "query" if question.is_instant else "query_range"
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(asked)}"
        began_s = time.monotonic()
        try:
            with urllib.request.urlopen(url, timeout=_WITHIN_S) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            content = error.read()
        took_s = time.monotonic() - began_s
        said = json.loads(content)
        return Asked(
            question, took_s, len(said.get("data", {}).get("result", ())), said.get("error", "")
        )


def configuration(
    agents: str, count: int, rules: Sequence[Path], interval_s: int
) -> dict[str, Any]:
    """Return what scrapes *count* agents at the address *agents*, each an instance of its own."""
    targets = [f"{number}" for number in range(count)]
    # A host's address in a real fleet: what it is asked for is a path here.
    relabelled = [
        {
            "source_labels": ["__address__"],
            "target_label": "__metrics_path__",
            "replacement": "/agent/$1/metrics",
        },
        {
            "source_labels": ["__address__"],
            "target_label": "instance",
            "replacement": "host-$1:9845",
        },
        {"target_label": "__address__", "replacement": agents},
    ]
    return {
        "global": {
            "scrape_interval": f"{interval_s}s",
            "evaluation_interval": f"{interval_s}s",
        },
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [
            {
                "job_name": "gilscope",
                "static_configs": [{"targets": targets}],
                "relabel_configs": relabelled,
            }
        ],
    }


@contextmanager
def serving(config: Mapping[str, object], folder: Path) -> Iterator[Server]:
    """Run Prometheus with *config* in *folder* until the block has ended."""
    file, data, address = folder / "prometheus.yml", folder / "data", free_address()
    # JSON is YAML.
    file.write_text(json.dumps(config))
    command = (
        prometheus_tool("prometheus"),
        f"--config.file={file}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address={address}",
        f"--query.timeout={_WITHIN_S:.0f}s",
    )
    with ready_server(command, address, folder / "prometheus.log"):
        yield Server(f"http://{address}", data)


def version(figures: Figures) -> str:
    """Return which Prometheus it is; raises StopIteration where it does not say."""
    return next(figures.samples("prometheus_build_info")).labels["version"]
