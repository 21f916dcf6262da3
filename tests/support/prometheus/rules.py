"""The shipped rules as tests see them, and the labels that an expression yields."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser as promql
import yaml

from gilscope.metrics.client import CLIENT_FAMILIES
from gilscope.metrics.table import FAMILIES
from support.paths import ROOT

__all__ = [
    "RULES",
    "Rule",
    "exported_labels",
    "known_labels",
    "labels_of",
    "queries_of",
    "quickened",
    "rules",
]

RULES = ROOT / "dashboards" / "rules"

_SCRAPE = frozenset({"job", "instance"})
"""What Prometheus adds to every sample."""
_QUERY = re.compile(r'printf "((?:[^"\\]|\\.)*)"')

Labels = frozenset[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of one of the files."""

    file: Path
    name: str
    expr: str
    is_alert: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


def rules() -> tuple[Rule, ...]:
    """Return all rules in the order in which they stand in their files."""
    return tuple(
        Rule(
            file,
            rule.get("alert") or rule["record"],
            rule["expr"],
            "alert" in rule,
            rule.get("labels", {}),
            rule.get("annotations", {}),
        )
        for file in sorted(RULES.glob("*.yml"))
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    )


def exported_labels() -> dict[str, Labels]:
    """Return the labels of each series that Prometheus stores of gilscope, by its name."""
    found = {"up": _SCRAPE}
    for family in (*FAMILIES, *CLIENT_FAMILIES):
        labels = _SCRAPE | set(family.labels)
        if family.type == "histogram":
            found[f"{family.name}_bucket"] = labels | {"le"}
            found[f"{family.name}_sum"] = found[f"{family.name}_count"] = labels
            # As a native histogram.
            found[family.name] = labels
        else:
            found[family.name] = labels
    return found


def known_labels() -> dict[str, Labels]:
    """Return the labels of what is exported and of what the rules record, by name."""
    known = exported_labels()
    for rule in rules():
        if not rule.is_alert:
            known[rule.name] = labels_of(rule.expr, known)
    return known


def queries_of(rule: Rule) -> Iterator[str]:
    """Yield the queries that the annotations of *rule* make, with x for what they fill in."""
    for text in rule.annotations.values():
        for form in _QUERY.findall(text):
            yield form.replace(r"\"", '"').replace("%q", '"x"')


def quickened(text: str) -> str:
    """Return a file of rules whose ranges are ten seconds long, and whose alerts wait for three."""
    return re.sub(r"(?m)^( +for: )\d+m$", r"\g<1>3s", text.replace("[5m]", "[10s]"))


def labels_of(expr: str, known: Mapping[str, Labels]) -> Labels:
    """Return the labels of what *expr* yields, where series have the labels *known*.

    Raises ValueError where it asks for series that are not known, names a label that they do not
    have, or brings series together whose labels differ.
    """
    return _yielded(promql.parse(expr), known) or frozenset()


def _yielded(node: Any, known: Mapping[str, Labels]) -> Labels | None:
    """Return the labels, None for a number."""
    match node := _bare(node):
        case promql.VectorSelector():
            labels = known.get(node.name or "")
            if labels is None:
                raise ValueError(f"{node.name} is not exported")
            _named(labels, (each.name for each in node.matchers.matchers), node)
            return labels
        case promql.Call() if node.func.name == "scalar":
            _yielded(node.args[0], known)
            return None
        case promql.Call():
            (labels,) = [found for each in node.args if (found := _yielded(each, known))]
            return labels
        case promql.AggregateExpr():
            return _aggregated(node, _yielded(node.expr, known) or frozenset())
        case promql.BinaryExpr():
            return _joined(node, _yielded(node.lhs, known), _yielded(node.rhs, known))
        case promql.NumberLiteral():
            return None
    raise ValueError(f"{type(node).__name__} is not understood: {node}")


def _bare(node: Any) -> Any:
    """Return what is in brackets, or what has a range."""
    while isinstance(node, promql.ParenExpr | promql.MatrixSelector):
        node = node.expr if isinstance(node, promql.ParenExpr) else node.vector_selector
    return node


def _aggregated(node: promql.AggregateExpr, inner: Labels) -> Labels:
    if node.modifier is None:
        return inner if str(node.op) in ("topk", "bottomk") else frozenset()
    named = _named(inner, node.modifier.labels, node)
    return named if node.modifier.type == promql.AggModifierType.By else inner - named


def _joined(node: promql.BinaryExpr, left: Labels | None, right: Labels | None) -> Labels | None:
    if left is None or right is None:
        return right if left is None else left
    if str(node.op) == "or":
        return left | right
    matching = None if node.modifier is None else node.modifier.matching
    if matching is None:
        if left != right:
            raise ValueError(f"{sorted(left ^ right)} are on one side only: {node}")
    elif matching.type == promql.LabelModifierType.Exclude:
        # What one side alone has may be ignored, and has no value where the two meet.
        _named(left | right, matching.labels, node)
    else:
        _named(left & right, matching.labels, node)
    return left


def _named(labels: Labels, names: Any, node: object) -> Labels:
    named = frozenset(names)
    if not named <= labels:
        raise ValueError(f"there is no label {sorted(named - labels)}: {node}")
    return named
