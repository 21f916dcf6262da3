"""Queries over the metric table, in PromQL with the variables of a dashboard."""

from dataclasses import dataclass
from typing import Literal

from gilscope.metrics.table import Family, Type

__all__ = ["PROCESS", "TARGET_LABELS", "Aggregation", "Query", "Scope", "Window"]

TARGET_LABELS = ("cluster", "namespace", "pod", "job", "instance")
"""What Prometheus knows of the agent that it scrapes. The first three need not be there."""

PROCESS = ("cluster", "namespace", "pod", "instance", "process", "pid")
"""What tells one service, or with pids one traced process, from all others on its host, but for
containers."""

Aggregation = Literal["sum", "max", "min"]
Window = Literal["$__rate_interval", "$__range"]

_EACH_STEP: Window = "$__rate_interval"


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression, and the families that it reads."""

    expr: str
    families: tuple[Family, ...]

    def per(self, other: "Query", *shared: str) -> "Query":
        """Return this divided by *other*, which has one series for each value of *shared*.

        Without *shared* both have the same labels.
        """
        matching = f" on ({', '.join(shared)}) group_left ()" if shared else ""
        families = dict.fromkeys((*self.families, *other.families))
        return Query(f"{self.expr}\n/{matching}\n{other.expr}", tuple(families))

    def highest(self, *by: str) -> "Query":
        """Return the highest of these, or of those that share the labels *by*."""
        kept = f" by ({', '.join(by)})" if by else ""
        return Query(f"max{kept} ({self.expr})", self.families)

    def top(self, number: int) -> "Query":
        """Return the *number* series with the highest values."""
        return Query(f"topk({number}, {self.expr})", self.families)


@dataclass(frozen=True, slots=True)
class Scope:
    """The series that a dashboard's variables select.

    What is asked of a histogram is asked of its classic series, and where there are none of the
    native histogram: Prometheus keeps either.

    Each method takes the labels that are kept (*by*) and those that are fixed (*where*; a value
    with | stands for several), and raises ValueError where a family does not have such a label, or
    is of another type.
    """

    labels: tuple[str, ...] = ()
    """Labels of families for which the dashboard has a variable of the same name."""

    def rate(
        self,
        family: Family,
        *by: str,
        how: Aggregation = "sum",
        span: Window = _EACH_STEP,
        **where: str,
    ) -> Query:
        """Return the gain a second of a counter."""
        _check(family, "counter")
        return self._rate(family, family.name, by, how, span, where)

    def gain(self, family: Family, *by: str, span: Window = _EACH_STEP, **where: str) -> Query:
        """Return what a counter has gained in *span*."""
        _check(family, "counter")
        series = self._series(family, family.name, where)
        return Query(
            f"sum{_by(family, by)} (increase({series}[{span}]))",
            (family,),
        )

    def total(self, family: Family, *by: str, **where: str) -> Query:
        """Return a counter as it stands."""
        _check(family, "counter")
        return self._now(family, by, "sum", where)

    def seconds(self, family: Family, *by: str, span: Window = _EACH_STEP, **where: str) -> Query:
        """Return the gain a second of a histogram's sum."""
        return self._part(family, "sum", by, span, where)

    def count(self, family: Family, *by: str, span: Window = _EACH_STEP, **where: str) -> Query:
        """Return how many observations a second a histogram gets."""
        return self._part(family, "count", by, span, where)

    def buckets(self, family: Family, **where: str) -> Query:
        """Return how many observations a second each bucket of a histogram gets, cumulated."""
        _check(family, "histogram")
        classic = self._rate(family, f"{family.name}_bucket", ("le",), "sum", _EACH_STEP, where)
        native = self._rate(family, family.name, (), "sum", _EACH_STEP, where)
        return _either(classic, native)

    def quantile(
        self,
        share: float,
        family: Family,
        *by: str,
        span: Window = _EACH_STEP,
        **where: str,
    ) -> Query:
        """Return the value below which *share* of a histogram's observations are."""
        _check(family, "histogram")
        classic = self._rate(family, f"{family.name}_bucket", (*by, "le"), "sum", span, where)
        native = self._rate(family, family.name, by, "sum", span, where)
        return _either(
            Query(f"histogram_quantile({share:g}, {classic.expr})", (family,)),
            Query(f"histogram_quantile({share:g}, {native.expr})", (family,)),
        )

    def gauge(
        self,
        family: Family,
        *by: str,
        how: Aggregation = "max",
        **where: str,
    ) -> Query:
        """Return a gauge as it stands."""
        _check(family, "gauge")
        return self._now(family, by, how, where)

    def _part(
        self,
        family: Family,
        part: str,
        by: tuple[str, ...],
        span: Window,
        where: dict[str, str],
    ) -> Query:
        _check(family, "histogram")
        classic = self._rate(family, f"{family.name}_{part}", by, "sum", span, where)
        native = self._rate(family, family.name, by, "sum", span, where)
        return _either(classic, Query(f"histogram_{part}({native.expr})", (family,)))

    def _now(
        self, family: Family, by: tuple[str, ...], how: Aggregation, where: dict[str, str]
    ) -> Query:
        series = self._series(family, family.name, where)
        return Query(f"{how}{_by(family, by)} ({series})", (family,))

    def _rate(  # noqa: PLR0913, PLR0917 - what every rate consists of
        self,
        family: Family,
        name: str,
        by: tuple[str, ...],
        how: Aggregation,
        span: Window,
        where: dict[str, str],
    ) -> Query:
        series = self._series(family, name, where)
        return Query(f"{how}{_by(family, by)} (rate({series}[{span}]))", (family,))

    def _series(self, family: Family, name: str, where: dict[str, str]) -> str:
        if unknown := where.keys() - set(family.labels):
            raise ValueError(f"{family.name} has no label {', '.join(sorted(unknown))}")
        own = (label for label in self.labels if label in family.labels and label not in where)
        chosen = [f'{label}=~"${label}"' for label in (*TARGET_LABELS, *own)]
        fixed = [
            f'{label}{"=~" if "|" in value else "="}"{value}"' for label, value in where.items()
        ]
        return f"{name}{{{', '.join(chosen + fixed)}}}"


def _either(classic: Query, native: Query) -> Query:
    return Query(f"({classic.expr}\nor {native.expr})", classic.families)


def _check(family: Family, expected: Type) -> None:
    if family.type != expected:
        raise ValueError(f"{family.name} is a {family.type}, not a {expected}")


def _by(family: Family, by: tuple[str, ...]) -> str:
    known = {*family.labels, *TARGET_LABELS}
    if family.type == "histogram":
        known.add("le")
    if unknown := [label for label in by if label not in known]:
        raise ValueError(f"{family.name} has no label {', '.join(unknown)}")
    return f" by ({', '.join(by)})" if by else ""
