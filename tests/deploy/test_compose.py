"""The compose file and what its services read: of known form, and fitting each other."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gilscope import __version__
from gilscope.assets.bundles import provisioning
from gilscope.cli import build_parser
from support.deploy.manifests import DEPLOY
from support.docs.pages import ROOT
from support.prometheus.rules import RULES
from support.prometheus.tools import prometheus_tool

_FILE = DEPLOY / "compose.yaml"
_SCHEMA = json.loads((Path(__file__).parent / "schemas" / "compose-spec.json").read_text())
_PROMETHEUS = DEPLOY / "prometheus" / "prometheus.yml"
_ALERTMANAGER = DEPLOY / "alertmanager" / "alertmanager.yml"


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


_SERVICES: Mapping[str, Any] = _read(_FILE)["services"]


def _faults(content: Any) -> list[str]:
    validator = jsonschema.Draft7Validator(_SCHEMA)
    return [f"{'.'.join(map(str, each.path))}" for each in validator.iter_errors(content)]


def _mounts(service: str) -> dict[str, Path]:
    """Return what a service finds of this checkout, by the path where it finds that."""
    words = (volume.split(":") for volume in _SERVICES[service]["volumes"])
    return {place: DEPLOY / source for source, place, *_ in words if source.startswith(".")}


def test_file_has_the_published_form() -> None:
    """
    The schema of the Compose Specification.
    """
    assert [] == _faults(_read(_FILE))


@pytest.mark.parametrize(
    ("service", "key", "value"),
    [("agent", "cap_adds", ["BPF"]), ("grafana", "ports", 3000), ("demo", "cap_drop", "ALL")],
)
def test_faults_are_found(service: str, key: str, value: object) -> None:
    """
    Names that are not known, and values of other types.
    """
    content = _read(_FILE)
    content["services"][service][key] = value

    assert 1 == len(_faults(content))


def test_agent_has_the_least_rights() -> None:
    """
    Those of a DaemonSet, whose sight it has.
    """
    agent = _SERVICES["agent"]

    assert ["ALL"] == agent["cap_drop"]
    assert ["BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH"] == agent["cap_add"]
    assert agent["read_only"]
    assert "host" == agent["pid"]
    assert "privileged" not in agent
    assert f"gilscope:{__version__}" == agent["image"] == _SERVICES["demo"]["image"]
    assert ("0.0.0.0", 9845) == build_parser().parse_args(agent["command"]).listen  # noqa: S104 - in a container


def test_nobody_else_is_let_in() -> None:
    """
    Every port is on the loopback alone.
    """
    ports = [port for service in _SERVICES.values() for port in service.get("ports", [])]

    assert [] != ports
    assert [] == [port for port in ports if not port.startswith("127.0.0.1:")]


@pytest.mark.parametrize("service", ["demo", "prometheus", "alertmanager", "grafana"])
def test_what_is_mounted_is_there(service: str) -> None:
    """
    Each file and folder is in the checkout.
    """
    assert [] == [path for path in _mounts(service).values() if not path.exists()]


def test_images_are_pinned() -> None:
    """
    To a version that was there when this was written.
    """
    tags = {name: service["image"].rpartition(":")[2] for name, service in _SERVICES.items()}

    assert [] == [name for name, tag in tags.items() if tag in ("", "latest")]


def test_prometheus_understands_its_file(tmp_path: Path) -> None:
    """
    And finds rules where the compose file puts them.
    """
    mounts = _mounts("prometheus")
    text = _PROMETHEUS.read_text()
    assert _PROMETHEUS == mounts["/etc/prometheus/prometheus.yml"].resolve()
    for place, path in mounts.items():
        text = text.replace(place, str(path.resolve()))
    (tmp_path / "prometheus.yml").write_text(text)

    command = [prometheus_tool("promtool"), "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert len(list(RULES.glob("*.yml"))) == done.stdout.count("rules found")


def test_alertmanager_understands_its_file() -> None:
    """
    And all alerts go to the one receiver there is.
    """
    words = ["config", "routes", "test", f"--config.file={_ALERTMANAGER}", "severity=critical"]
    done = subprocess.run(
        [prometheus_tool("amtool"), *words], capture_output=True, text=True, check=False
    )

    assert (0, "nobody\n") == (done.returncode, done.stdout), done.stderr


def test_services_know_each_other() -> None:
    """
    Prometheus scrapes the agent and notifies Alertmanager, and Grafana asks Prometheus.
    """
    prometheus = _read(_PROMETHEUS)
    ((agent,),) = (job["static_configs"][0]["targets"] for job in prometheus["scrape_configs"])
    (alerting,) = prometheus["alerting"]["alertmanagers"]
    (source,) = yaml.safe_load(provisioning()["datasources/gilscope.yaml"])["datasources"]
    addresses = [agent, *alerting["static_configs"][0]["targets"], source["url"]]

    for address, name in zip(addresses, ("agent", "alertmanager", "prometheus"), strict=True):
        host, _, port = address.removeprefix("http://").partition(":")
        (published,) = _SERVICES[name]["ports"]
        assert (name, port) == (host, published.rpartition(":")[2])


def test_grafana_knows_how_often_is_scraped() -> None:
    """
    With a shorter interval some rates would have no data.
    """
    (source,) = yaml.safe_load(provisioning()["datasources/gilscope.yaml"])["datasources"]

    assert _read(_PROMETHEUS)["global"]["scrape_interval"] == source["jsonData"]["timeInterval"]


def test_grafana_is_given_what_is_exported() -> None:
    """
    Its folder of provisioning is that of `gilscope export provisioning`.
    """
    prefix = "/etc/grafana/provisioning/"
    found = {}
    for place, path in _mounts("grafana").items():
        files = [path] if path.is_file() else sorted(path.iterdir())
        for file in files:
            name = place if path.is_file() else f"{place}/{file.name}"
            found[name.removeprefix(prefix)] = file.read_text()

    assert provisioning() == found


def test_home_is_a_dashboard() -> None:
    """
    The first page that Grafana shows is the overview.
    """
    home = _SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]

    assert home.removeprefix("/etc/grafana/provisioning/") in provisioning()


def test_demonstration_is_there() -> None:
    """
    Its scripts are examples of the documentation, which explains them.
    """
    (line,) = _SERVICES["demo"]["command"]
    folder = _mounts("demo")["/demo"].resolve()

    assert ROOT / "docs" / "examples" == folder
    assert "/demo" == _SERVICES["demo"]["working_dir"]
    assert [] == [
        word for word in line.split() if word.endswith(".py") and not (folder / word).exists()
    ]
