"""What a user chooses at the top of a dashboard, and the links beside that."""

from collections.abc import Mapping, Sequence

from dashboards.generator.containers import OFFERED, offered
from dashboards.generator.queries import TARGET_LABELS
from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from gilscope.metrics import table as metrics
from gilscope.metrics.table import Family

__all__ = ["DATASOURCE", "TAG", "datasource_variable", "label_variables", "links"]

DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "gilscope"

_ALL = VariableOption(selected=True, text=["All"], value=["$__all"])
_LABELS = {
    "cluster": "Cluster",
    "namespace": "Namespace",
    "pod": "Pod",
    "job": "Job",
    "instance": "Instance",
    "route": "Route",
    "container_id": "Container",
    "process": "Process",
    "pid": "Process id (with --per-process)",
    "log": "STM log",
}
_SCRAPED = ("job", "instance")
_CONTAINER = "container_id"


def datasource_variable() -> dashboard.DatasourceVariable:
    """Return the choice of a Prometheus."""
    return dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def label_variables(
    own: Mapping[str, Family], scraped: Family = metrics.BUILD_INFO
) -> list[dashboard.QueryVariable]:
    """Return a choice for each label of what *scraped* is scraped from, and for those of *own*.

    What is offered are the values in the family beside the label, as far as they go with what was
    chosen before.
    """
    families = dict.fromkeys(TARGET_LABELS, scraped) | dict(own)
    labels = list(families)
    return [
        _containers(labels[:place])
        if label == _CONTAINER
        else _variable(label, _offered(family, labels[:place], label))
        for place, (label, family) in enumerate(families.items())
    ]


def links() -> dashboard.DashboardLink:
    """Return the links to the other dashboards, which keep what is chosen and the time."""
    return (
        dashboard.DashboardLink("gilscope")
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .include_vars(True)
        .keep_time(True)
    )


def _variable(label: str, query: str) -> dashboard.QueryVariable:
    # Where Prometheus has no such label, as outside of Kubernetes, all means none as well.
    everything = ".+" if label in _SCRAPED else ".*"
    return (
        dashboard.QueryVariable(label)
        .label(_LABELS[label])
        .datasource(DATASOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(everything)
        .current(_ALL)
    )


def _containers(before: Sequence[str]) -> dashboard.QueryVariable:
    # An id tells a reader nothing.
    return _variable(_CONTAINER, offered(_matchers(before))).regex(OFFERED)


def _offered(family: Family, before: Sequence[str], label: str) -> str:
    known = (*TARGET_LABELS, *family.labels)
    matchers = ", ".join(_matchers([each for each in before if each in known]))
    return f"label_values({family.name}{{{matchers}}}, {label})"


def _matchers(labels: Sequence[str]) -> list[str]:
    return [f'{each}=~"${each}"' for each in labels]
