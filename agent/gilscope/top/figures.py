"""Figures of the live view: plain numbers whose units stand in the head of their column."""

from gilscope.model.gil import TracingCost
from gilscope.text.units import NS_PER_S

__all__ = [
    "a_second",
    "milliseconds",
    "percent",
    "seconds",
    "share",
    "small_percent",
    "tracing_cost",
]

_NS_PER_MS = 1_000_000
_MS_PER_S = 1_000
_PERCENT = 100
_WIDE = 10_000
"""From here on a number goes without its decimal, which keeps its column narrow."""


def share(part_ns: int | None, whole_ns: int | None) -> float | None:
    """Return *part_ns* by *whole_ns*; None where one of them is not known, or nothing passed."""
    return part_ns / whole_ns if part_ns is not None and whole_ns else None


def a_second(lost: float) -> str:
    """Return *lost*, in seconds a second, in milliseconds a second: ``980.2``."""
    return _tenths(lost * _MS_PER_S)


def milliseconds(ns: float) -> str:
    """Return *ns* in milliseconds: ``15.2``."""
    return _tenths(ns / _NS_PER_MS)


def seconds(ns: float) -> str:
    """Return *ns* in seconds: ``12.3``."""
    return _tenths(ns / NS_PER_S)


def percent(part: float) -> str:
    """Return *part*, of 1, in percent: ``84``."""
    return f"{part * _PERCENT:.0f}"


def small_percent(part: float) -> str:
    """Return *part*, of 1, in percent with two decimals where it is below one: ``0.13``."""
    value = part * _PERCENT
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < _PERCENT else f"{value:.0f}"


def tracing_cost(cost: TracingCost | None) -> str:
    """Return what tracing costs a process, in percent; empty where that is not known."""
    return "" if cost is None else small_percent(cost.recent_ratio)


def _tenths(number: float) -> str:
    return f"{number:.1f}" if number < _WIDE else f"{number:.0f}"
