"""Names of containers from kube-state-metrics, joined by a real Prometheus.

No cluster is part of this. Figures of agents, and what kube-state-metrics has to say, are series of
the form that both have; the scrape of agents is that of the ServiceMonitor.
"""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml

from support.commands.gilscope import eventually
from support.deploy.dashboards import DASHBOARDS, Json, panel_titled, with_values
from support.deploy.manifests import DEPLOY
from support.docs.pages import DOCS, code_blocks
from support.prometheus.server import Prometheus, prometheus

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_WEB, _JOB, _DOCKER = ("a" * 64, "b" * 64, "c" * 64)
_WEB_POD, _JOB_POD = (f"0000000{number}-1111-2222-3333-444444444444" for number in (1, 2))
_NEARLY_ONE = 0.9
_SPANS = {"__range": "6s", "__rate_interval": "6s"}

# Threads that wait, and who they are: two processes of one container, one whose pod is not seen,
# one that Kubernetes does not know, and one that is in no container.
_PROCESSES = (
    (0.25, "web.py", 11, _WEB, _WEB_POD),
    (0.5, "web.py", 12, _WEB, _WEB_POD),
    (1.0, "job.py", 21, _JOB, ""),
    (2.0, "docker.py", 31, _DOCKER, ""),
    (4.0, "host.py", 41, "", ""),
)
_PODS = (("web-0", _WEB_POD), ("job-0", _JOB_POD))
# The last one has not been started.
_CONTAINERS = (
    ("web-0", "app", f"containerd://{_WEB}"),
    ("job-0", "main", f"cri-o://{_JOB}"),
    ("job-1", "main", ""),
)


def _kubernetes() -> str:
    lines = [f'kube_pod_info{{namespace="shop",pod="{pod}",uid="{uid}"}} 1' for pod, uid in _PODS]
    for pod, container, name in _CONTAINERS:
        labels = f'namespace="shop",pod="{pod}",container="{container}",container_id="{name}"'
        lines.append(f"kube_pod_container_info{{{labels}}} 1")
    return "\n".join([*lines, ""])


def _figures(began_s: float) -> str:
    gone_s = time.monotonic() - began_s
    lines = []
    for waiting, name, pid, container, pod in _PROCESSES:
        labels = f'process="{name}",pid="{pid}",container_id="{container}",pod_uid="{pod}"'
        lines += [
            f'gilscope_gil_thread_wait_seconds_total{{{labels},role="work"}} {waiting * gone_s}',
            f'gilscope_probe_valid{{{labels},method="sites"}} 1',
        ]
    return "\n".join(['gilscope_build_info{version="1",bcc_version="1"} 1', *lines, ""])


@contextmanager
def _exporters() -> Iterator[str]:
    """Serve an agent's figures, and what kube-state-metrics has beside them."""
    began_s = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        """Answers scrapes."""

        def do_GET(self) -> None:
            """Send one or the other."""
            text = _kubernetes() if self.path == "/kubernetes" else _figures(began_s)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _of_the_operator(address: str) -> Json:
    """Return the scrape that the operator makes of the ServiceMonitor, as far as it matters."""
    monitor = yaml.safe_load((DEPLOY / "prometheus-operator" / "servicemonitor.yaml").read_text())
    (endpoint,) = monitor["spec"]["endpoints"]
    names = {"sourceLabels": "source_labels", "targetLabel": "target_label"}
    steps = [
        {names.get(key, key): value for key, value in step.items()}
        for step in endpoint["relabelings"]
    ]
    found = {
        "__meta_kubernetes_pod_node_name": "node-1",
        **{label: f"the agent's {label}" for label in ("namespace", "pod", "container")},
        **dict.fromkeys(("service", "endpoint"), "gilscope"),
    }
    return {
        "job_name": "gilscope",
        "static_configs": [{"targets": [address], "labels": found}],
        "relabel_configs": steps,
    }


@dataclass(frozen=True, slots=True)
class _Names:
    """A Prometheus that knows figures and names."""

    prometheus: Prometheus

    def ask(self, expr: str, **chosen: str) -> list[tuple[Json, float]]:
        """Return the labels and values that a query of a dashboard or a page yields."""
        answer = self.prometheus.now(with_values(expr, **_SPANS, **chosen))
        assert [] == answer.warnings
        return [(each["metric"], float(each["value"][1])) for each in answer.series]

    def waiting(self, **chosen: str) -> dict[tuple[str, ...], float]:
        """Return the first column of the overview's containers, by their names."""
        target = panel_titled(DASHBOARDS["overview"], "Containers, over the time range")["targets"][
            0
        ]
        return {
            (labels["namespace"], labels["pod"], labels["container"]): round(value, 2)
            for labels, value in self.ask(target["expr"], **chosen)
        }


@pytest.fixture(scope="module")
def names() -> Iterator[_Names]:
    """Scrape until there are rates."""
    with _exporters() as address:
        of_kubernetes = {
            "job_name": "kube-state-metrics",
            "honor_labels": True,
            "metrics_path": "/kubernetes",
            "static_configs": [{"targets": [address]}],
        }
        with prometheus(_of_the_operator(address), of_kubernetes) as server:
            found = _Names(server)
            # A rate is that of its whole range, once the range has been seen.
            eventually(lambda: found.waiting().get(("shop", "job-0", "main"), 0) > _NEARLY_ONE)
            yield found


def _variable(dashboard: str) -> Any:
    (found,) = [
        each
        for each in DASHBOARDS[dashboard]["templating"]["list"]
        if each["name"] == "container_id"
    ]
    return found


def _offered(names: _Names, variable: Any, **chosen: str) -> dict[str, str]:
    """Return what Grafana would show of a variable, and what that stands for."""
    (query,) = re.findall(r"query_result\((.*)\)$", variable["query"])
    form = re.compile(variable["regex"].strip("/").replace("(?<", "(?P<"))
    lines = (
        "{" + ", ".join(f'{label}="{value}"' for label, value in sorted(labels.items())) + "} 1 0"
        for labels, _ in names.ask(query, **chosen)
    )
    found = (form.search(line) for line in lines)
    return {each["text"]: each["value"] for each in found if each}


def test_containers_have_their_names(names: _Names) -> None:
    """
    Processes of one are added up, and what has no name is not shown.
    """
    rows = names.waiting()

    assert {("shop", "web-0", "app"), ("shop", "job-0", "main")} == set(rows)
    assert rows["shop", "web-0", "app"] == pytest.approx(0.75, rel=0.2)
    assert rows["shop", "job-0", "main"] == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize("dashboard", ["overview", "process"])
def test_containers_can_be_chosen_by_name(names: _Names, dashboard: str) -> None:
    """
    One that Kubernetes does not know has the beginning of its id, and there is no other agent's.
    """
    variable = _variable(dashboard)

    assert {"shop/web-0/app": _WEB, "shop/job-0/main": _JOB, _DOCKER[:12]: _DOCKER} == _offered(
        names, variable
    )
    assert {} == _offered(names, variable, instance="node-2")


def test_chosen_container_is_shown_alone(names: _Names) -> None:
    """
    On the overview's tables and the process dashboard's figures.
    """
    (target,) = panel_titled(DASHBOARDS["process"], "Threads kept waiting")["targets"]
    every = names.ask(target["expr"])[0][1]
    one = names.ask(target["expr"], container_id=_JOB)[0][1]

    assert {("shop", "job-0", "main")} == set(names.waiting(container_id=_JOB))
    assert 7.75 == pytest.approx(every, rel=0.2)
    assert 1.0 == pytest.approx(one, rel=0.2)


def test_agent_is_not_taken_for_what_it_traces(names: _Names) -> None:
    """
    The ServiceMonitor names the node, and leaves out the agent's own namespace, pod and container.
    """
    expected = {"__name__", "job", "instance", "version", "bcc_version"}
    ((labels, _),) = names.ask("gilscope_build_info")

    assert expected == set(labels)
    assert "node-1" == labels["instance"]


def test_queries_of_the_page_have_answers(names: _Names) -> None:
    """
    Both joins in docs/kubernetes.md, by container and by pod.
    """
    page = (DOCS / "kubernetes.md").read_text()
    by_container, by_pod = (
        {
            (labels["namespace"], labels["pod"], labels.get("container", "")): value
            for labels, value in names.ask(query.replace("[5m]", "[6s]"))
        }
        for query in code_blocks(page, "text")
    )

    assert {("shop", "web-0", "app"), ("shop", "job-0", "main")} == set(by_container)
    assert [("shop", "web-0", "")] == list(by_pod)
