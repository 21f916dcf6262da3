"""What the dashboards ask is in the metric table, and is asked in a way that fits its type."""

import copy
import re
from collections.abc import Container, Iterator

import pytest

from gilscope.metrics import table as metrics
from gilscope.metrics.client import CLIENT_FAMILIES
from gilscope.metrics.table import FAMILIES, Family
from support.deploy.dashboards import DASHBOARDS, Json, broken, panel_titled, panels, targets
from support.deploy.promql import CHOSEN, Read, asked

_OF_THE_AGENT = ("cluster", "namespace", "pod", "job", "instance")
_OF_KUBERNETES = {
    "kube_pod_container_info": {"namespace", "pod", "container", "container_id"},
}
"""What others export, with the labels that are read of it."""
_BY_NAME = {family.name: family for family in (*FAMILIES, *CLIENT_FAMILIES)}
_PARTS = ("_bucket", "_sum", "_count")
_PLACEHOLDER = re.compile(r"{{(\w+)}}")
_RANGE = re.compile(r"\[([^\]]*)\]")

# A reason has no series before its first loss, and increase() does not see how a series begins.
_AS_IT_STANDS = {metrics.LOST_EVENTS}


def _family(name: str) -> tuple[Family | None, str]:
    """Return the family that series of that name belong to, and which part of it they are."""
    for part in _PARTS:
        family = _BY_NAME.get(name.removesuffix(part)) if name.endswith(part) else None
        if family is not None and family.type == "histogram":
            return family, part
    return _BY_NAME.get(name), ""


def _about_names(read: Read) -> Iterator[str]:
    labels = set(read.kept or ())
    if labels != _OF_KUBERNETES[read.name]:
        yield f"{read.name} is kept by {', '.join(sorted(labels))}"


def _about_series(
    read: Read, own_variables: set[str], classic: Container[str] = ()
) -> Iterator[str]:
    family, part = _family(read.name)
    if family is None:
        yield f"there is no {read.name}"
        return
    if family.type == "histogram" and not part and family.name not in classic:
        yield f"{read.name} is a histogram"
    is_rate = read.function in {"rate", "increase"}
    if is_rate is (family.type == "gauge") and family not in _AS_IT_STANDS:
        yield f"{read.function or 'no rate'} of {read.name}, which is a {family.type}"
    if read.kept is None:
        yield f"{read.name} is not added up"
    if part == "_bucket" and "le" not in (read.kept or ()):
        yield f"buckets of {family.name} are added up"
    labels = {*family.labels, *_OF_THE_AGENT, *(["le"] if part == "_bucket" else [])}
    matched = dict(read.matched)
    for label in sorted({*matched, *(read.kept or ())} - labels):
        yield f"{read.name} has no label {label}"
    chosen = {*_OF_THE_AGENT, *(own_variables & set(family.labels))}
    for label in sorted(chosen):
        if matched.get(label) != f"~{CHOSEN}{label}":
            yield f"{read.name} is not limited to the chosen {label}"


def _about_target(name: str, target: Json, own_variables: set[str]) -> Iterator[str]:
    try:
        query = asked(target["expr"])
    except ValueError as error:
        yield f"{name}: {error}"
        return
    # The native form is what is asked for where there is no classic one.
    parts = (_family(read.name) for read in query.reads)
    classic = {family.name for family, part in parts if family is not None and part}
    for read in query.reads:
        is_ours = read.name not in _OF_KUBERNETES
        about = _about_series(read, own_variables, classic) if is_ours else _about_names(read)
        for finding in about:
            yield f"{name}: {finding}"
    spans = {"$__rate_interval", "$__range"} if target["instant"] else {"$__rate_interval"}
    for span in _RANGE.findall(target["expr"]):
        if span not in spans:
            yield f"{name}: a range of {span}"
    for label in _PLACEHOLDER.findall(target.get("legendFormat", "")):
        if label not in query.labels:
            yield f"{name}: the legend names {label}"


def _about_columns(panel: Json) -> Iterator[str]:
    names = panel["transformations"][-1]["options"]["renameByName"]
    labels = {name for name in names if not name.startswith("Value")}
    for target in panel["targets"]:
        if labels != set(asked(target["expr"]).labels):
            yield f"{panel['title']} {target['refId']}: the columns are {', '.join(sorted(labels))}"


def _findings(dashboard: Json) -> list[str]:
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    own_variables = variables - {"datasource", *_OF_THE_AGENT}
    found: list[str] = []
    for name, target in targets(dashboard):
        found += _about_target(name, target, own_variables)
    for panel in panels(dashboard):
        if panel["type"] == "table":
            found += _about_columns(panel)
    return found


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
def test_queries_fit_the_metric_table(dashboard: Json) -> None:
    """
    Names, types and labels are those of the table, and every variable limits what it can.
    """
    assert [] == _findings(dashboard)


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
def test_descriptions_explain_the_metrics(dashboard: Json) -> None:
    """
    A panel's description has each metric that it shows, with the help text of the table.
    """
    for panel in panels(dashboard):
        reads = (read for target in panel["targets"] for read in asked(target["expr"]).reads)
        families = {family for read in reads if (family := _family(read.name)[0])}

        expected = {f"* `{family.name}`: {family.help}" for family in families}
        assert expected == {line for line in panel["description"].splitlines() if line[:1] == "*"}


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        (
            "gilscope_gil_thread_wait",
            "gilscope_gil_wait",
            "there is no gilscope_gil_wait_seconds_total",
        ),
        ("rate(", "rate((", "unclosed left parenthesis"),
        (
            "rate(",
            "deriv(",
            "deriv of gilscope_gil_thread_wait_seconds_total, which is a counter",
        ),
        (
            "gilscope_gil_thread_wait_seconds_total",
            "gilscope_gil_longest_wait_seconds",
            "rate of gilscope_gil_longest_wait_seconds, which is a gauge",
        ),
        (
            "gilscope_gil_thread_wait_seconds_total",
            "gilscope_gil_wait_seconds",
            "gilscope_gil_wait_seconds is a histogram",
        ),
        (
            "gilscope_gil_thread_wait_seconds_total",
            "gilscope_gil_wait_seconds_bucket",
            "buckets of gilscope_gil_wait_seconds are added up",
        ),
        ("sum (", "(", "gilscope_gil_thread_wait_seconds_total is not added up"),
        ("sum (", "sum by (after) (", "gilscope_gil_thread_wait_seconds_total has no label after"),
        ('pid=~"$pid"', 'tid="1"', "gilscope_gil_thread_wait_seconds_total has no label tid"),
        (
            'pod=~"$pod"',
            'pod="$pod"',
            "gilscope_gil_thread_wait_seconds_total is not limited to the chosen pod",
        ),
        (
            ', pid=~"$pid"',
            "",
            "gilscope_gil_thread_wait_seconds_total is not limited to the chosen pid",
        ),
        ("$__rate_interval", "5m", "a range of 5m"),
    ],
)
def test_what_does_not_fit_is_found(old: str, new: str, finding: str) -> None:
    """
    Each rule finds what breaks it.
    """
    dashboard = broken()
    (target,) = panel_titled(dashboard, "Threads kept waiting")["targets"]
    assert old in target["expr"]
    target["expr"] = target["expr"].replace(old, new)

    assert [] != [found for found in _findings(dashboard) if finding in found]


def test_names_by_other_labels_are_found() -> None:
    """
    Each of the labels that make a name has to be kept, or rows of two containers become one.
    """
    dashboard = copy.deepcopy(DASHBOARDS["overview"])
    target = panel_titled(dashboard, "Containers, over the time range")["targets"][0]
    target["expr"] = target["expr"].replace(
        "max by (container_id, namespace,", "max by (namespace,"
    )

    finding = "kube_pod_container_info is kept by container, namespace, pod"
    assert [f"Containers, over the time range A: {finding}"] == _findings(dashboard)


def test_legends_and_columns_of_other_labels_are_found() -> None:
    """
    What a legend or a table names has to be among the labels of the answer.
    """
    dashboard = broken()
    (target,) = panel_titled(dashboard, "Threads kept waiting, by role")["targets"]
    target["legendFormat"] = "{{role}} {{thread}}"
    names = panel_titled(dashboard, "Pairs of places, over the time range")["transformations"]
    del names[-1]["options"]["renameByName"]["kind"]

    assert [
        "Threads kept waiting, by role A: the legend names thread",
        "Pairs of places, over the time range A: the columns are holder, waiter",
        "Pairs of places, over the time range B: the columns are holder, waiter",
    ] == _findings(dashboard)
