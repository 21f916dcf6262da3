"""Sums of what a JSON report and its metrics say, to the nanosecond: what forms are compared by."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from gilscope.model.stack import StackState
from gilscope.naming.places import IN_WORDS
from gilscope.text.units import NS_PER_S
from support.commands.json_reports import frames_of, state_of
from support.reports.scraped import Scrape

__all__ = ["by_label", "exact", "functions", "innermost", "of_holder", "of_role"]


def of_role(report: Mapping[str, Any], figure: str) -> dict[str, float]:
    """Return the sums of a *figure* of the threads, by role; as the metrics would."""
    sums: Counter[str] = Counter()
    for thread in report["threads"]:
        sums[thread["role"]] += exact(thread[figure])
    return _seconds(sums)


def of_holder(report: Mapping[str, Any]) -> dict[str, float]:
    """Return what was lost behind each function, likewise."""
    sums: Counter[str] = Counter()
    for edge in report["edges"]:
        # Everything in the workload is of the application, and calls nothing in Python.
        sums[innermost(report, edge["holder"])] += exact(edge["wait_s"])
    return _seconds(sums)


def innermost(report: Mapping[str, Any], stack: int) -> str:
    """Return the function in which *stack* ends, or in words why there is none."""
    names = [frame["function"] for frame in frames_of(report, stack)]
    return str(names[0]) if names else IN_WORDS[StackState(state_of(report, stack))]


def exact(value: float) -> int:
    """Return *value*, in seconds, in nanoseconds."""
    return round(value * NS_PER_S)


def _seconds(sums: Mapping[str, int]) -> dict[str, float]:
    return {name: ns / NS_PER_S for name, ns in sums.items() if ns}


def by_label(scrape: Scrape, name: str, label: str, end: str = "") -> dict[str, float]:
    """Return the sums of the samples by what one label has before *end*, but those of zero."""
    sums: Counter[str] = Counter()
    for sample in scrape.samples(name):
        value = sample.labels[label]
        sums[value.partition(end)[0] if end else value] += exact(sample.value)
    return _seconds(sums)


def functions(parts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the sums of *parts*, by their names."""
    sums: Counter[str] = Counter()
    for function, ns in parts:
        sums[function] += ns
    return dict(sums)
