"""The dashboards have the form that Grafana's own package of types describes.

The schemas beside this were made by schemas/make.sh from the TypeScript of @grafana/schema 13.2.3,
which is under the Apache License 2.0. There is none for what is asked of Prometheus.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest

from support.deploy.dashboards import DASHBOARDS, Json, broken, panel_titled, places

_SCHEMAS = Path(__file__).with_name("schemas")

# What the SDK writes whether it was asked to or not; Grafana does not read it any more.
_LEFT_OVER = {
    "templating.list: 'auto', 'auto_count', 'auto_min'",
    "options: 'footer'",
}


def _validator(name: str) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads((_SCHEMAS / f"{name}.json").read_text()))


_DASHBOARD, _PANEL, _ROW = (_validator(name) for name in ("Dashboard", "Panel", "RowPanel"))
_OPTIONS = {
    kind: _validator(f"{kind.capitalize()}Options")
    for kind in ("heatmap", "stat", "table", "timeseries")
}
_CUSTOM = {
    kind: _validator(f"{kind.capitalize()}FieldConfig")
    for kind in ("heatmap", "table", "timeseries")
}


def _faults(validator: jsonschema.Draft7Validator, part: Json, prefix: str = "") -> Iterator[str]:
    for error in validator.iter_errors(part):
        keys = [*prefix.split(), *(key for key in error.absolute_path if isinstance(key, str))]
        message = error.message
        if error.validator == "additionalProperties":
            message = message.partition("(")[2].rpartition(" w")[0]
        yield f"{'.'.join(keys)}: {message}"


def _findings(dashboard: Json) -> list[str]:
    """Return where *dashboard* departs from the schemas."""
    found = list(_faults(_DASHBOARD, dashboard))
    for panel in places(dashboard):
        kind = panel["type"]
        if kind == "row":
            found += _faults(_ROW, panel)
            continue
        found += _faults(_PANEL, panel)
        found += _faults(_OPTIONS[kind], panel["options"], "options")
        if kind in _CUSTOM:
            custom = panel["fieldConfig"]["defaults"].get("custom", {})
            found += _faults(_CUSTOM[kind], custom, "custom")
    return [fault for fault in found if fault not in _LEFT_OVER]


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
def test_form_is_that_of_grafana(dashboard: Json) -> None:
    """
    Every key is known, and every value is one that it may have.
    """
    assert [] == _findings(dashboard)


@pytest.mark.parametrize(
    ("part", "key", "value", "finding"),
    [
        (lambda board: board, "titles", "x", ": 'titles'"),
        (lambda board: board["panels"][1], "gridPoss", {}, ": 'gridPoss'"),
        (
            lambda board: panel_titled(board, "Waits, how long")["options"],
            "calculated",
            True,
            "options: 'calculated'",
        ),
        (
            lambda board: panel_titled(board, "Waits, quantiles")["fieldConfig"]["defaults"][
                "custom"
            ],
            "lineWidth",
            "x",
            "custom.lineWidth: 'x' is not of type 'number'",
        ),
        (
            lambda board: panel_titled(board, "GIL held")["fieldConfig"]["defaults"]["thresholds"],
            "mode",
            "abs",
            "fieldConfig.defaults.thresholds.mode: 'abs' is not one of ['absolute', 'percentage']",
        ),
    ],
)
def test_what_is_no_part_of_the_form_is_found(
    part: Callable[[Json], Json], key: str, value: object, finding: str
) -> None:
    """
    A key that nobody knows, and a value that is none of those that a key may have.
    """
    dashboard = broken()
    part(dashboard)[key] = value

    assert finding in _findings(dashboard)
