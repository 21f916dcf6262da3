"""The Helm chart as far as it can be seen without Helm, which `make check-manifests` needs."""

from typing import Any

import yaml

from gilscope import __version__
from support.deploy.manifests import DEPLOY
from support.docs.pages import ROOT

_CHART = DEPLOY / "helm" / "gilscope"


def _read(name: str) -> Any:
    return yaml.safe_load((_CHART / name).read_text())


def test_chart_has_the_version_of_the_package() -> None:
    """
    It is the tag of the image, too.
    """
    assert (__version__, __version__) == (
        _read("Chart.yaml")["version"],
        _read("Chart.yaml")["appVersion"],
    )


def test_chart_has_no_copies() -> None:
    """
    Rules and dashboards are the only ones that there are.
    """
    assert ROOT / "dashboards" / "rules" == (_CHART / "rules").resolve()
    assert ROOT / "dashboards" / "grafana" == (_CHART / "dashboards").resolve()


def test_chart_asks_for_the_least_rights() -> None:
    """
    The three of a sidecar, and the one that a whole node takes.
    """
    values = _read("values.yaml")

    assert ["BPF", "PERFMON", "SYS_PTRACE"] == values["capabilities"]
    assert ["DAC_READ_SEARCH"] == values["daemonsetCapabilities"]


def test_chart_asks_nobody_to_have_an_operator() -> None:
    """
    What needs kinds that not every cluster has is off.
    """
    values = _read("values.yaml")

    assert [False] * 3 == [values[name]["enabled"] for name in ("monitor", "rules", "dashboards")]
