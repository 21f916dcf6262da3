"""The chart: what it makes for either mode, and for the chart of somebody else."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from gilscope import __home__
from support.deploy.manifest_tools import CHART, VERSION, rendered, run
from support.deploy.manifests import DEPLOY, faults, objects

_PARENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
        {{- include "gilscope.podLabels" .Subcharts.gilscope | nindent 8 }}
    spec:
      shareProcessNamespace: true
      initContainers:
        {{- include "gilscope.container" .Subcharts.gilscope | nindent 8 }}
      containers:
        - name: web
          image: web:1
      volumes:
        {{- include "gilscope.volumes" .Subcharts.gilscope | nindent 8 }}
"""


def _kinds(text: str) -> list[str]:
    return sorted({str(each["kind"]) for each in objects(text)})


def _pod(text: str, kind: str) -> Any:
    (found,) = [each for each in objects(text) if each["kind"] == kind]
    return found["spec"]["template"]["spec"]


def _agent(pod: Any) -> Any:
    every = [*pod.get("initContainers", ()), *pod["containers"]]
    (agent,) = [each for each in every if each["name"] == "gilscope"]
    return agent


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A chart of somebody else, which depends on this one."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "web.yaml").write_text(_PARENT)
    shutil.copytree(CHART, tmp_path / "charts" / "gilscope")
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 0.1.0\n")
    (tmp_path / "values.yaml").write_text("gilscope:\n  mode: sidecar\n")
    return tmp_path


@pytest.mark.parametrize("mode", ["daemonset", "sidecar"])
def test_linter_has_nothing_to_say(mode: str) -> None:
    """
    Helm's own, with either mode.
    """
    code, said = run("helm", "lint", "--strict", "--set", f"mode={mode}", str(CHART))

    assert 0 == code, said


def test_linter_finds_a_fault(tmp_path: Path) -> None:
    """
    A template that does not end.
    """
    shutil.copytree(CHART, tmp_path / "gilscope")
    template = tmp_path / "gilscope" / "templates" / "rules.yaml"
    template.write_text(template.read_text().removesuffix("{{- end }}\n"))

    code, said = run("helm", "lint", "--strict", str(tmp_path / "gilscope"))

    assert 1 == code
    assert "unexpected EOF" in said


def test_only_what_is_wanted_is_made() -> None:
    """
    Rules, dashboards and scrapes need an operator or a Grafana, so they have to be asked for.
    """
    assert ["DaemonSet", "Service", "ServiceAccount"] == _kinds(rendered())
    assert [] == _kinds(rendered("mode=sidecar"))
    assert ["PodMonitor"] == _kinds(rendered("mode=sidecar", "monitor.enabled=true"))
    assert ["ConfigMap"] == _kinds(rendered("mode=sidecar", "dashboards.enabled=true"))
    assert ["PrometheusRule"] == _kinds(rendered("mode=sidecar", "rules.enabled=true"))


def test_unknown_mode_is_refused() -> None:
    """
    With the words that are understood.
    """
    version = ("--kube-version", VERSION)
    code, said = run("helm", "template", "some", str(CHART), *version, "--set", "mode=cronjob")

    assert 1 == code
    assert "value must be one of 'daemonset', 'sidecar'" in said


def test_daemon_set_is_the_one_without_a_chart() -> None:
    """
    The same rights, sight, probes of health and volumes as in deploy/kubernetes.
    """
    plain = _pod((DEPLOY / "kubernetes" / "daemonset.yaml").read_text(), "DaemonSet")
    made = _pod(rendered(), "DaemonSet")

    for key in ("hostPID", "nodeSelector", "tolerations", "automountServiceAccountToken"):
        assert plain[key] == made[key]
    expected, agent = _agent(plain), _agent(made)
    for key in ("securityContext", "image", "env", "ports", "resources"):
        assert expected[key] == agent[key]
    assert set(expected["args"]) == set(agent["args"])
    assert len(plain["volumes"]) == len(made["volumes"])


def test_sidecar_is_the_one_without_a_chart(parent: Path) -> None:
    """
    In the pods of another chart, with the rights of the one in deploy/kubernetes.
    """
    plain = _agent(_pod((DEPLOY / "kubernetes" / "sidecar.yaml").read_text(), "Deployment"))
    text = rendered(chart=parent)
    made = _agent(_pod(text, "Deployment"))

    assert [] == [fault for each in objects(text) for fault in faults(each)]
    for key in ("securityContext", "image", "ports"):
        assert plain[key] == made[key]
    assert set(plain["args"]) == set(made["args"])


@pytest.mark.parametrize("mode", ["daemonset", "sidecar"])
def test_values_reach_their_places(mode: str, parent: Path) -> None:
    """
    More environment, volumes and mounts, an endpoint, and labels.
    """
    values = {
        "mode": mode,
        "port": 1234,
        "extraEnv": [{"name": "A", "value": "b"}],
        "extraVolumes": [{"name": "web", "secret": {"secretName": "web"}}],
        "extraVolumeMounts": [{"name": "web", "mountPath": "/etc/gilscope"}],
        "monitor": {"enabled": True, "endpoint": {"interval": "5s"}, "labels": {"release": "one"}},
    }
    (parent / "values.yaml").write_text(yaml.safe_dump({"gilscope": values}))
    text = rendered(chart=parent)
    agents = [
        _agent(each["spec"]["template"]["spec"])
        for each in objects(text)
        if each["kind"] in ("DaemonSet", "Deployment")
    ]
    (monitor,) = [each for each in objects(text) if str(each["kind"]).endswith("Monitor")]
    (endpoint,) = monitor["spec"].get("endpoints") or monitor["spec"]["podMetricsEndpoints"]

    assert [] == [fault for each in objects(text) for fault in faults(each)]
    for agent in agents:
        assert {"name": "A", "value": "b"} in agent["env"]
        assert {"name": "web", "mountPath": "/etc/gilscope"} in agent["volumeMounts"]
        assert "0.0.0.0:1234" in agent["args"]
        assert 1234 == agent["ports"][0]["containerPort"]
    assert "5s" == endpoint["interval"]
    assert "one" == monitor["metadata"]["labels"]["release"]


def test_rules_are_those_of_the_checkout() -> None:
    """
    And their runbooks get the address that is given.
    """
    made = [
        each["spec"]
        for each in objects(rendered("rules.enabled=true", "rules.runbooks=https://example.org/x/"))
        if each["kind"] == "PrometheusRule"
    ]
    files = sorted((CHART / "rules").glob("*.yml"))
    texts = [
        path.read_text().replace(f"{__home__}/blob/main/", "https://example.org/x/")
        for path in files
    ]

    assert [yaml.safe_load(text) for text in texts] == made


def test_dashboards_are_those_of_the_checkout() -> None:
    """
    Byte for byte.
    """
    made = {
        name: text
        for each in objects(rendered("dashboards.enabled=true"))
        if each["kind"] == "ConfigMap"
        for name, text in each["data"].items()
    }

    assert {
        f"gilscope-{path.name}": path.read_text() for path in (CHART / "dashboards").glob("*.json")
    } == made
