"""The objects for Kubernetes: of known form, and with the rights that are needed and no others."""

import copy
from pathlib import Path
from typing import Any

import pytest

from gilscope import __version__
from gilscope.assets.bundles import kubernetes
from gilscope.cli import build_parser
from gilscope.web.address import parse_address
from support.deploy.manifests import DEPLOY, Object, faults, objects
from support.docs.pages import ROOT

_FILES = sorted([*DEPLOY.glob("kubernetes/*.yaml"), *DEPLOY.glob("prometheus-operator/*.yaml")])
_EXPORTED = kubernetes()
_RIGHTS = ["BPF", "PERFMON", "SYS_PTRACE"]
_OF_OTHERS = "DAC_READ_SEARCH"
"""To read the memory of processes of other users than root."""


def _committed(name: str) -> list[Object]:
    return objects((DEPLOY / name).read_text())


def _one(name: str, kind: str) -> Any:
    (found,) = [each for each in _committed(name) if each["kind"] == kind]
    return copy.deepcopy(found)


def _pod(name: str, kind: str) -> Any:
    return _one(name, kind)["spec"]["template"]["spec"]


def _agent(pod: Any) -> Any:
    every = [*pod.get("initContainers", ()), *pod["containers"]]
    (agent,) = [each for each in every if each["name"] == "gilscope"]
    return agent


_PODS = {
    "daemonset": _pod("kubernetes/daemonset.yaml", "DaemonSet"),
    "sidecar": _pod("kubernetes/sidecar.yaml", "Deployment"),
}


@pytest.mark.parametrize("file", _FILES, ids=lambda path: path.name)
def test_objects_have_the_published_form(file: Path) -> None:
    """
    Kubernetes' schemas, and the operator's, know every field.
    """
    found = objects(file.read_text())

    assert [] != found
    assert [] == [fault for each in found for fault in faults(each)]


@pytest.mark.parametrize("name", _EXPORTED)
def test_exported_objects_have_the_published_form(name: str) -> None:
    """
    The same of what `gilscope export kubernetes` writes.
    """
    assert [] == [fault for each in objects(_EXPORTED[name]) for fault in faults(each)]


@pytest.mark.parametrize(
    ("name", "kind", "path", "value"),
    [
        ("kubernetes/daemonset.yaml", "DaemonSet", ("spec", "template", "spec", "hostpid"), True),
        ("kubernetes/sidecar.yaml", "Deployment", ("spec", "replicas"), "one"),
        ("prometheus-operator/servicemonitor.yaml", "ServiceMonitor", ("spec", "endpoint"), []),
        ("prometheus-operator/podmonitor.yaml", "PodMonitor", ("spec", "selector"), "gilscope"),
        ("prometheus-operator/rules-gil.yaml", "PrometheusRule", ("spec", "groups"), {}),
        ("prometheus-operator/rules-gil.yaml", "PrometheusRule", ("kind",), "PrometheusRules"),
    ],
)
def test_faults_are_found(name: str, kind: str, path: tuple[str, ...], value: object) -> None:
    """
    Fields that do not exist, values of other types, and unknown kinds.
    """
    broken = _one(name, kind)
    place = broken
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value

    assert 1 == len(list(faults(broken)))


@pytest.mark.parametrize(
    ("pod", "added"), [("daemonset", [*_RIGHTS, _OF_OTHERS]), ("sidecar", _RIGHTS)]
)
def test_agent_has_the_least_rights(pod: str, added: list[str]) -> None:
    """
    All capabilities go and few come back; its files are read-only, and it never asks the API.
    """
    context = _agent(_PODS[pod])["securityContext"]

    assert {"drop": ["ALL"], "add": added} == context["capabilities"]
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert "privileged" not in context
    assert not _PODS[pod]["automountServiceAccountToken"]


def test_sidecar_does_not_keep_its_pod() -> None:
    """
    It is stopped when the server has ended, and the server does not wait for it to be ready.
    """
    (agent,) = _PODS["sidecar"]["initContainers"]

    assert "Always" == agent["restartPolicy"]
    assert "startupProbe" not in agent


def test_agent_sees_the_processes() -> None:
    """
    Those of the node, or those of the pod.
    """
    assert _PODS["daemonset"]["hostPID"]
    assert _PODS["sidecar"]["shareProcessNamespace"]
    assert "hostPID" not in _PODS["sidecar"]


@pytest.mark.parametrize("name", _PODS)
def test_agent_is_of_this_version_and_understands_its_arguments(name: str) -> None:
    """
    The image has the version of the package, and listens where the port is.
    """
    agent = _agent(_PODS[name])
    arguments = build_parser().parse_args(agent["args"])
    (port,) = agent["ports"]

    assert f"gilscope:{__version__}" == agent["image"]
    assert ("0.0.0.0", port["containerPort"]) == arguments.listen  # noqa: S104 - in a pod
    assert ("0.0.0.0", 9845) == parse_address("0.0.0.0:9845")  # noqa: S104 - likewise
    assert port["name"] == agent["livenessProbe"]["httpGet"]["port"]


@pytest.mark.parametrize("name", _PODS)
def test_agent_can_write_where_it_needs_to(name: str) -> None:
    """
    Each mount has its volume.
    """
    mounts = {mount["name"]: mount["mountPath"] for mount in _agent(_PODS[name])["volumeMounts"]}

    assert {volume["name"] for volume in _PODS[name]["volumes"]} == set(mounts)
    assert "/tmp" in mounts.values()


def test_service_monitor_selects_the_daemon_set() -> None:
    """
    Through its Service, by labels and the name of the port.
    """
    service = _one("kubernetes/daemonset.yaml", "Service")
    agents = _one("kubernetes/daemonset.yaml", "DaemonSet")["spec"]["template"]
    of_service = _one("prometheus-operator/servicemonitor.yaml", "ServiceMonitor")["spec"]
    (served,) = service["spec"]["ports"]
    (port,) = _agent(_PODS["daemonset"])["ports"]

    assert of_service["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= agents["metadata"]["labels"].items()
    assert of_service["endpoints"][0]["port"] == served["name"]
    assert (served["port"], served["targetPort"]) == (port["containerPort"], port["name"])


def test_pod_monitor_selects_sidecars() -> None:
    """
    By a label that the DaemonSet's pods do not have, and the name of the port.
    """
    pods = _one("kubernetes/sidecar.yaml", "Deployment")["spec"]["template"]
    agents = _one("kubernetes/daemonset.yaml", "DaemonSet")["spec"]["template"]
    of_pods = _one("prometheus-operator/podmonitor.yaml", "PodMonitor")["spec"]
    labels = of_pods["selector"]["matchLabels"].items()
    (port,) = _agent(_PODS["sidecar"])["ports"]

    assert labels <= pods["metadata"]["labels"].items()
    assert not labels <= agents["metadata"]["labels"].items()
    assert of_pods["podMetricsEndpoints"][0]["port"] == port["name"]


def test_namespace_allows_the_agent() -> None:
    """
    The other levels of Pod Security refuse its capabilities.
    """
    labels = _one("kubernetes/daemonset.yaml", "Namespace")["metadata"]["labels"]

    assert "privileged" == labels["pod-security.kubernetes.io/enforce"]


def test_page_explains_the_rights() -> None:
    """
    Every capability and every field of the security context.
    """
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    names = {*_RIGHTS, _OF_OTHERS}
    for pod in _PODS.values():
        names |= set(_agent(pod)["securityContext"])

    assert set() == {name for name in names if f"`{name}" not in page}
