"""Says which metrics of an agent make how many series, what reads them, and what to drop first."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml
from bench.markdown import NONE, table

from gilscope.metrics.table import FAMILIES
from support.deploy.dashboards import DASHBOARDS, targets
from support.deploy.promql import asked
from support.prometheus.rules import queries_of, rules

__all__ = [
    "DROPS",
    "FLEET_RULES",
    "Series",
    "drop_rules",
    "family_table",
    "loss_table",
    "panel_reads",
    "rule_reads",
]

FLEET_RULES = (
    Path(__file__).resolve().parents[1] / "deploy" / "prometheus" / "gilscope-fleet.rules.yml"
)
DROPS = (
    "gilscope_gil_(hold|switch_latency)_seconds_bucket",
    "gilscope_gil_(blocked|blocked_seconds|held_by_seconds)_total",
    "gilscope_agent_table_.+",
)
"""What to drop, in this order: expressions for names of series."""
_SUFFIXES = ("_bucket", "_sum", "_count")

Series = tuple[str, Mapping[str, str]]
"""The name of a sample, and its labels."""


def drop_rules() -> str:
    """Return what has Prometheus drop them, as YAML."""
    return "".join(map(_drop, DROPS))


def _drop(regex: str) -> str:
    return f"  - source_labels: [__name__]\n    regex: {regex}\n    action: drop\n"


def loss_table(series: Sequence[Series]) -> str:
    """Return what is saved by each drop rule, and what is lost."""
    return table(
        [
            "dropped",
            "series",
            "share of a scrape",
            "panels that lose a query",
            "rules that read it",
        ],
        [_loss(regex, series) for regex in DROPS],
    )


def _loss(regex: str, series: Sequence[Series]) -> list[str]:
    dropped = sum(bool(re.fullmatch(regex, name)) for name, _ in series)
    panels = {panel for panel, name in panel_reads() if re.fullmatch(regex, name)}
    named = {rule for rule, name, _ in rule_reads() if re.fullmatch(regex, name)}
    return [
        f"`{regex.replace('|', chr(92) + '|')}`",
        str(dropped),
        f"{dropped / len(series):.1%}",
        "; ".join(sorted(panels)) or NONE,
        ", ".join(sorted(named)) or NONE,
    ]


def family_table(series: Sequence[Series], services: int) -> str:
    """Return the families by their series, with the dashboards and rules that read them."""
    counts = Counter(_family(name) for name, labels in series if "process" in labels)
    queries: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for panel, name in panel_reads():
        queries[_family(name)][panel.partition(":")[0]] += 1
    named: defaultdict[str, set[str]] = defaultdict(set)
    for rule, name, _ in rule_reads():
        named[_family(name)].add(rule)
    return table(
        ["family", "series a service", "share of a scrape", "queries that read it", "rules"],
        [
            [
                f"`{name}`",
                f"{count / services:.1f}",
                f"{count / len(series):.1%}",
                ", ".join(f"{dash} {n}" for dash, n in sorted(queries[name].items())) or NONE,
                str(len(named[name])),
            ]
            for name, count in counts.most_common()
            if count > services
        ],
    )


def panel_reads() -> Iterator[tuple[str, str]]:
    """Yield each query's dashboard with its panel, and the name of a series that it reads."""
    for dashboard, content in DASHBOARDS.items():
        for title, target in targets(content):
            for name in {read.name for read in asked(target["expr"]).reads}:
                yield f"{dashboard}: {title.rpartition(' ')[0]}", name


def rule_reads() -> Iterator[tuple[str, str, bool]]:
    """Yield a rule, the name of a series that it reads, and whether only its description does."""
    for rule in rules():
        for place, expr in enumerate((rule.expr, *queries_of(rule))):
            for read in asked(expr).reads:
                yield rule.name, read.name, place > 0
    for group in yaml.safe_load(FLEET_RULES.read_text())["groups"]:
        for each in group["rules"]:
            for read in asked(each["expr"]).reads:
                yield each["record"], read.name, False


def _family(name: str) -> str:
    for family in FAMILIES:
        if family.type == "histogram" and name.removesuffix("_bucket").startswith(family.name):
            return family.name if name.removeprefix(family.name) in ("", *_SUFFIXES) else name
    return name
