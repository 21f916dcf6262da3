"""What a query reads, and which labels its answer has."""

from collections.abc import Iterator
from dataclasses import dataclass

from promql_parser import (
    AggregateExpr,
    BinaryExpr,
    Call,
    Expr,
    MatchOp,
    MatrixSelector,
    ParenExpr,
    StringLiteral,
    VectorSelector,
    parse,
)

from support.deploy.dashboards import with_values

__all__ = ["CHOSEN", "Asked", "Read", "asked"]

CHOSEN = "what was chosen for "
"""Stands for the values of a label's variable, with the label behind it."""

_LABELS = (
    *("cluster", "namespace", "pod", "job", "instance"),
    *("container_id", "process", "pid", "log", "route"),
)


@dataclass(frozen=True, slots=True)
class Read:
    """Series that a query reads."""

    name: str
    function: str
    """That they are handed to, such as rate; empty for an aggregation."""
    matched: tuple[tuple[str, str], ...]
    """Labels, each with its value, behind "~" where that is a regular expression."""
    kept: frozenset[str] | None
    """The labels by which they are added up; None where they are not."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, taken apart."""

    reads: tuple[Read, ...]
    labels: frozenset[str]
    """Of its answer."""


def asked(expr: str) -> Asked:
    """Return what a target of a dashboard asks; raises ValueError where that is no PromQL."""
    tree = parse(with_values(expr, **{label: CHOSEN + label for label in _LABELS}))
    return Asked(tuple(_reads(tree)), _labels(tree))


def _reads(node: Expr, function: str = "", kept: frozenset[str] | None = None) -> Iterator[Read]:
    if isinstance(node, VectorSelector):
        matched = tuple(
            (matcher.name, f"{'~' if matcher.op == MatchOp.Re else ''}{matcher.value}")
            for matcher in node.matchers.matchers
        )
        yield Read(node.name or "", function, matched, kept)
    elif isinstance(node, MatrixSelector):
        yield from _reads(node.vector_selector, function, kept)
    elif isinstance(node, Call):
        for argument in node.args:
            if not isinstance(argument, StringLiteral):
                yield from _reads(argument, node.func.name, kept)
    elif isinstance(node, AggregateExpr):
        # topk and its like keep what there is.
        own = kept if node.param is not None else _labels(node)
        yield from _reads(node.expr, "", own)
    elif isinstance(node, BinaryExpr):
        yield from _reads(node.lhs, function, kept)
        yield from _reads(node.rhs, function, kept)
    elif isinstance(node, ParenExpr):
        yield from _reads(node.expr, function, kept)


def _labels(node: Expr) -> frozenset[str]:
    """Return the labels that an expression's values have, as far as it says so itself."""
    if isinstance(node, AggregateExpr):
        if node.param is not None:
            return _labels(node.expr)
        return frozenset(node.modifier.labels if node.modifier else ())
    if isinstance(node, Call):
        inner = _labels(node.args[-1])
        return inner - {"le"} if node.func.name == "histogram_quantile" else inner
    if isinstance(node, BinaryExpr):
        return _labels(node.lhs)
    if isinstance(node, ParenExpr):
        return _labels(node.expr)
    return frozenset()
