"""The Helm chart as far as it can be seen without Helm, which `make check-manifests` needs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest
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


def _schema() -> Any:
    return json.loads((_CHART / "values.schema.json").read_text())


def _names(values: Mapping[str, Any], known: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield every value's name, those within objects of which *known* names the members too."""
    for name, value in values.items():
        members = known.get(name, {}).get("properties")
        if members is None:
            yield prefix + name
        else:
            yield from _names(value, members, f"{prefix}{name}.")


def test_default_values_are_as_the_schema_wants_them() -> None:
    """
    And the schema knows no value that the chart does not have.
    """
    schema, values = _schema(), _read("values.yaml")

    jsonschema.validate(values, schema)
    assert {"global", *values} == set(schema["properties"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "cronjob"),
        ("port", "9845"),
        ("capabilities", ["CAP_BPF"]),
        ("args", []),
        ("healthScheme", "https"),
        ("monitor", {"enable": True}),
        ("tolerations", {}),
        ("resource", {}),
    ],
)
def test_wrong_values_are_refused(name: str, value: object) -> None:
    """
    Names that do not exist, values that cannot be meant.
    """
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**_read("values.yaml"), name: value}, _schema())


def test_page_has_every_value() -> None:
    """
    The chart's page is a table of all of them.
    """
    page = (_CHART / "README.md").read_text()

    names = set(_names(_read("values.yaml"), _schema()["properties"]))
    assert set() == {name for name in names if f"`{name}`" not in page}
