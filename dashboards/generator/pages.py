"""The dashboards, each as the text of its file."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dashboards.generator import agent, locks, overview, process, requests, stm
from dashboards.generator.layout import Section, lay_out
from dashboards.generator.variables import TAG, datasource_variable, label_variables, links
from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync

from gilscope.metrics.client import REQUEST_GIL_WAIT
from gilscope.metrics.table import BUILD_INFO, Family

__all__ = ["render"]


@dataclass(frozen=True, slots=True)
class _Page:
    title: str
    text: str
    sections: Callable[[], list[Section]]
    variables: Mapping[str, Family]
    """Labels that can be chosen, each with the family whose values are offered."""
    scraped: Family = BUILD_INFO
    """What everything is scraped from that has it."""


_PAGES = {
    "overview": _Page(
        "gilscope: overview",
        "Which Python processes lose time to the GIL, how much, and since when.",
        overview.sections,
        overview.VARIABLES,
    ),
    "process": _Page(
        "gilscope: process",
        "What the threads of a process wait for: roles, places in the code, convoys, holds.",
        process.sections,
        process.VARIABLES,
    ),
    "locks": _Page(
        "gilscope: locks",
        "Which locks threads wait for besides the GIL, at which lines, and what stops the world.",
        locks.sections,
        locks.VARIABLES,
    ),
    "requests": _Page(
        "gilscope: requests",
        "What the GIL costs the requests of services that use gilscope-client, by route.",
        requests.sections,
        requests.VARIABLES,
        REQUEST_GIL_WAIT,
    ),
    "stm": _Page(
        "gilscope: STM",
        "Which transactions collide, where, and what that costs: of PyPy-STM's logs, and of live "
        "processes.",
        stm.sections,
        stm.VARIABLES,
    ),
    "agent": _Page(
        "gilscope: agent",
        "What gilscope traces, what it has lost, and what it costs.",
        agent.sections,
        agent.VARIABLES,
    ),
}


def render() -> Mapping[str, str]:
    """Return the text of each file by its name."""
    return {f"{name}.json": _text(name, page) for name, page in _PAGES.items()}


def _text(name: str, page: _Page) -> str:
    made = (
        dashboard.Dashboard(page.title)
        .uid(f"gilscope-{name}")
        .description(page.text)
        .tags([TAG])
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time("now-1h", "now")
        .refresh("30s")
        .timezone("browser")
        .link(links())
        .with_variable(datasource_variable())
    )
    for variable in label_variables(page.variables, page.scraped):
        made.with_variable(variable)
    lay_out(made, page.sections())
    return json.dumps(made.build(), cls=JSONEncoder, sort_keys=True, indent=2) + "\n"
