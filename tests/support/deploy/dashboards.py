"""The dashboards of the checkout, as Grafana would read them."""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from support.paths import ROOT

__all__ = [
    "DASHBOARDS",
    "FOLDER",
    "Json",
    "broken",
    "panel_titled",
    "panels",
    "places",
    "targets",
    "with_values",
]

Json = dict[str, Any]

FOLDER = ROOT / "dashboards" / "grafana"

DASHBOARDS: Mapping[str, Json] = {
    path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))
}

_ALL_OF_A_LABEL = {"job": ".+", "instance": ".+"}
# $1 is no variable: it stands for what an expression in label_replace() has found.
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")


def places(dashboard: Json) -> Iterator[Json]:
    """Yield everything that has a place, headings and what is folded below them included."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def panels(dashboard: Json) -> list[Json]:
    """Return the panels that show something."""
    return [panel for panel in places(dashboard) if panel["type"] != "row"]


def panel_titled(dashboard: Json, title: str) -> Json:
    """Return the one panel with that title."""
    (found,) = [panel for panel in panels(dashboard) if panel["title"] == title]
    return found


def targets(dashboard: Json) -> Iterator[tuple[str, Json]]:
    """Yield each query with the title of its panel and its letter."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target


def with_values(expr: str, **values: str) -> str:
    """Return *expr* as Grafana sends it, where nothing but *values* was chosen."""
    known = {"__rate_interval": "1m", "__range": "1h", **_ALL_OF_A_LABEL, **values}
    return _VARIABLE.sub(lambda found: known.get(found[1], ".*"), expr)


def broken() -> Json:
    """Return a dashboard for tests to plant a fault in."""
    return copy.deepcopy(DASHBOARDS["process"])
