"""The dashboards, rules and schemas that ship with the code, as files for those who read them."""

from collections.abc import Mapping
from pathlib import Path

from gilscope.assets.config_map import config_map
from gilscope.assets.files import asset

__all__ = ["dashboards", "kubernetes", "provisioning", "rules", "schema"]

_PROVISIONED = "dashboards/gilscope"
"""Where the provider in ``deploy/grafana/provisioning`` expects the dashboards."""
_GRAFANA_LABELS = {"grafana_dashboard": "1"}
"""What the Grafana of the usual Helm charts looks for."""


def dashboards() -> Mapping[str, str]:
    """Return the Grafana dashboards, each as the text of its file by its name.

    Like all functions here it raises FileNotFoundError where the installation is not complete.
    """
    return _texts(asset("dashboards/grafana"), "*.json")


def rules() -> Mapping[str, str]:
    """Return the rules for Prometheus, each as the text of its file by its name."""
    return _texts(asset("dashboards/rules"), "*.yml")


def provisioning() -> Mapping[str, str]:
    """Return what is to be in Grafana's folder ``provisioning``, by path, dashboards included."""
    pages = {f"{_PROVISIONED}/{name}": text for name, text in dashboards().items()}
    return {**_texts(asset("deploy/grafana/provisioning"), "*/*.yaml"), **pages}


def kubernetes() -> Mapping[str, str]:
    """Return objects for the Prometheus operator, and the dashboards in ConfigMaps, by file."""
    pages = {
        f"dashboard-{Path(name).stem}.yaml": config_map(
            f"gilscope-dashboard-{Path(name).stem}", _GRAFANA_LABELS, {f"gilscope-{name}": text}
        )
        for name, text in dashboards().items()
    }
    return {**_texts(asset("deploy/prometheus-operator"), "*.yaml"), **pages}


def schema() -> Mapping[str, str]:
    """Return the JSON Schemas of recordings and of dumps."""
    folders = (asset("reports/gil"), asset("reports/dump"))
    return {
        name: text for folder in folders for name, text in _texts(folder, "*.schema.json").items()
    }


def _texts(folder: Path, pattern: str) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.glob(pattern))
    }
