"""Grafana's own types, as its SDK has them, know everything that the dashboards say.

Reading a dashboard into these types and writing it again loses every key that they do not know,
options of panels and queries included.
"""

import json
from collections.abc import Callable, Iterator

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from support.deploy.dashboards import DASHBOARDS, Json, broken, panels


def _differences(before: object, after: object, path: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _differences(before.get(key), after.get(key), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(one, other, f"{path}[{place}]")
    elif before != after:
        yield path


def _lost(dashboard: Json) -> list[str]:
    register_default_plugins()
    again = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))
    return list(_differences(dashboard, again))


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
def test_nothing_is_lost(dashboard: Json) -> None:
    """
    What is written again is what was read.
    """
    assert [] == _lost(dashboard)


@pytest.mark.parametrize(
    ("part", "key"),
    [
        (lambda panel: panel, "targetss"),
        (lambda panel: panel["options"], "colorMod"),
        (lambda panel: panel["targets"][0], "exprr"),
        (lambda panel: panel["fieldConfig"]["defaults"], "unitt"),
    ],
)
def test_unknown_keys_are_lost(part: Callable[[Json], Json], key: str) -> None:
    """
    A key with a letter too many or too few is seen, wherever it is.
    """
    dashboard = broken()
    part(panels(dashboard)[0])[key] = "x"
    (lost,) = _lost(dashboard)

    assert key == lost.rpartition(".")[2]
