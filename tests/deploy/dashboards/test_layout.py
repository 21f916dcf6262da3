"""What Grafana accepts and users do not: panels that overlap, or have no name or no unit."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.deploy.dashboards import (
    DASHBOARDS,
    Json,
    broken,
    panel_titled,
    panels,
    places,
    targets,
)

_COLUMNS = 24
_LABELS = ["cluster", "namespace", "pod", "job", "instance"]
_ON_TIME_RANGE_CHANGED = 2
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

_NEEDED = ("title", "description")


def _overlap(one: Json, other: Json) -> bool:
    return all(
        one[start] < other[start] + other[length] and other[start] < one[start] + one[length]
        for start, length in (("x", "w"), ("y", "h"))
    )


def _about_places(dashboard: Json) -> Iterator[str]:
    everything = list(places(dashboard))
    for panel in everything:
        place = panel["gridPos"]
        if place["x"] < 0 or place["x"] + place["w"] > _COLUMNS:
            yield f"{panel['title']} leaves the grid"
    for one, other in itertools.combinations(everything, 2):
        if _overlap(one["gridPos"], other["gridPos"]):
            yield f"{one['title']} and {other['title']} overlap"
        if one["id"] == other["id"]:
            yield f"{one['title']} and {other['title']} have the same id"


def _about_panels(dashboard: Json) -> Iterator[str]:
    for panel in panels(dashboard):
        settings = panel["fieldConfig"]["defaults"]
        said = {**settings, **{key: panel.get(key) for key in _NEEDED}}
        missing = [key for key in (*_NEEDED, "unit", "noValue") if not said.get(key)]
        if missing:
            yield f"{panel['title']} has no {', '.join(missing)}"
        if not panel["targets"]:
            yield f"{panel['title']} asks nothing"
        for part in (panel, *panel["targets"]):
            if part["datasource"] != _DATASOURCE:
                yield f"{panel['title']} does not ask the chosen Prometheus"
    titles = [panel["title"] for panel in panels(dashboard)]
    for title in sorted({title for title in titles if titles.count(title) > 1}):
        yield f"two panels are called {title}"


def _about_variables(dashboard: Json) -> Iterator[str]:
    variables = {each["name"]: each for each in dashboard["templating"]["list"]}
    first, *names = variables
    if first != "datasource" or variables[first]["type"] != "datasource":
        yield "no choice of a Prometheus"
    if names[: len(_LABELS)] != _LABELS:
        yield f"variables are {', '.join(names)}"
    for name in names:
        variable = variables[name]
        expected = {
            "allValue": ".+" if name in {"job", "instance"} else ".*",
            "datasource": _DATASOURCE,
            "includeAll": True,
            "multi": True,
            "refresh": _ON_TIME_RANGE_CHANGED,
        }
        for key, value in expected.items():
            if variable[key] != value:
                yield f"{key} of {name} is {variable[key]}"
    asked = " ".join(target["expr"] for _, target in targets(dashboard))
    for name in names:
        if f"${name}" not in asked:
            yield f"nothing depends on {name}"


def _findings(dashboard: Json) -> list[str]:
    found = [
        *_about_places(dashboard),
        *_about_panels(dashboard),
        *_about_variables(dashboard),
    ]
    if dashboard["editable"]:
        found.append("can be edited, and the changes lost")
    links = [(link["type"], link["includeVars"], link["keepTime"]) for link in dashboard["links"]]
    if links != [("dashboards", True, True)]:
        found.append("no links to the other dashboards")
    return found


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
def test_layout(dashboard: Json) -> None:
    """
    Panels have their places, names and units, and the variables are those of all dashboards.
    """
    assert [] == _findings(dashboard)


def test_dashboards_have_names_of_their_own() -> None:
    """
    No uid and no title is taken twice, and links find all of them by their tag.
    """
    boards = DASHBOARDS.values()

    assert [f"gilscope-{name}" for name in DASHBOARDS] == [board["uid"] for board in boards]
    assert len(DASHBOARDS) == len({board["title"] for board in boards})
    assert [["gilscope"]] * len(DASHBOARDS) == [board["tags"] for board in boards]


def _set(part: Callable[[Json], Any], key: str, value: object) -> Callable[[Json], None]:
    def plant(dashboard: Json) -> None:
        part(dashboard)[key] = value

    return plant


def _panel(title: str) -> Callable[[Json], Json]:
    return lambda board: panel_titled(board, title)


def _variable(name: str) -> Callable[[Json], Json]:
    def found(board: Json) -> Json:
        variables: list[Json] = board["templating"]["list"]
        (variable,) = [each for each in variables if each["name"] == name]
        return variable

    return found


@pytest.mark.parametrize(
    ("plant", "finding"),
    [
        (
            _set(lambda board: _panel("Waiting now")(board)["gridPos"], "x", 22),
            "Waiting now leaves the grid",
        ),
        (
            _set(lambda board: _panel("Waiting now")(board)["gridPos"], "w", 5),
            "Waiting now and Longest wait in flight overlap",
        ),
        (
            _set(_panel("Waiting now"), "id", 1),
            "At this moment and Waiting now have the same id",
        ),
        (_set(_panel("Waiting now"), "description", ""), "Waiting now has no description"),
        (
            _set(lambda board: _panel("Waiting now")(board)["fieldConfig"]["defaults"], "unit", ""),
            "Waiting now has no unit",
        ),
        (_set(_panel("Waiting now"), "targets", []), "Waiting now asks nothing"),
        (
            _set(_panel("Waiting now"), "datasource", {"type": "prometheus", "uid": "x"}),
            "Waiting now does not ask the chosen Prometheus",
        ),
        (_set(_panel("Waiting now"), "title", "GIL held"), "two panels are called GIL held"),
        (_set(_variable("datasource"), "type", "query"), "no choice of a Prometheus"),
        (
            _set(_variable("cluster"), "name", "pod"),
            "variables are pod, namespace, job, instance, container_id, process, pid",
        ),
        (_set(_variable("job"), "allValue", ".*"), "allValue of job is .*"),
        (_set(_variable("pod"), "allValue", ".+"), "allValue of pod is .+"),
        (_set(_variable("pid"), "multi", False), "multi of pid is False"),
        (_set(_variable("process"), "name", "program"), "nothing depends on program"),
        (_set(lambda board: board, "editable", True), "can be edited, and the changes lost"),
        (_set(lambda board: board, "links", []), "no links to the other dashboards"),
    ],
)
def test_what_is_amiss_is_found(plant: Callable[[Json], None], finding: str) -> None:
    """
    Each rule finds what breaks it.
    """
    dashboard = broken()
    plant(dashboard)

    assert finding in _findings(dashboard)
