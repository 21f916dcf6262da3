"""Limits that figures may pass, as ``waiting > 0.2`` or ``waiting change > 10%``."""

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

from gilscope.values import dataclass
from gilscope.verdict.figures import Figures

__all__ = ["NAMES", "Limit", "change_of", "limit"]

NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "waiting": ("waiting", "threads that wait for a GIL at any moment"),
    "waiting_per_cpu": ("waiting_per_cpu_s", "seconds lost for each second of CPU time used"),
    "convoys": ("convoys_per_s", "convoy waits a second"),
    "wait_p50": ("wait_p50_s", "half of the waits took about so long at most"),
    "wait_p99": ("wait_p99_s", "99 % of the waits took about so long at most"),
    "slow_drops": ("slow_drops_per_s", "drop requests a second that took 10 ms or longer"),
    "longest_drop": ("longest_drop_s", "the longest time until a drop request was answered"),
}
"""What can be limited: the field of `Figures`, and what it is."""

_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_UNITS: Final = {"": 1.0, "%": 0.01, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_TIMES: Final = {"s", "ms", "us"}
_FORM = re.compile(
    r"\s*([a-z0-9_]+)( +change)?\s*(>=|<=|>|<)\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*(%|s|ms|us)?\s*"
)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure, or its change, and what it must not be."""

    words: str
    """As the user has written it."""
    name: str
    of_change: bool
    sign: str
    value: float

    def passed_by(self, now: Figures, before: Figures | None = None) -> str:
        """Return in words that *now* passes it, or its change since *before*; empty: it does not.

        What a recording does not tell passes no limit.
        """
        value: float | None = getattr(now, NAMES[self.name][0])
        if self.of_change and before is not None:
            value = change_of(getattr(before, NAMES[self.name][0]), value)
        if value is None or not _OPERATORS[self.sign](value, self.value):
            return ""
        shown = f"{100 * value:+.1f} %" if self.of_change else f"{value:.4g}"
        return f"{self.name}{' change' if self.of_change else ''} is {shown}: {self.words}"


def limit(text: str, *, has_before: bool) -> Limit:
    """Return the limit that *text* says; raises ValueError, in words.

    *has_before*: there is an earlier report, so that changes can be limited.
    """
    found = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise ValueError(f"{text[:_LONGEST]!a} is no limit such as 'waiting > 0.2'")
    name, change, sign, number, unit = found.groups(default="")
    if name not in NAMES:
        raise ValueError(f"there is no figure {name!a} (choose from {', '.join(NAMES)})")
    if change and not has_before:
        raise ValueError("one recording has no change; gilscope diff compares two")
    is_time = NAMES[name][0].endswith(("p50_s", "p99_s", "drop_s"))
    if unit in _TIMES and (change or not is_time):
        raise ValueError(f"{name}{change} is no time, but {text!a} has {unit}")
    return Limit(text.strip(), name, bool(change), sign, float(number) * _UNITS[unit])


def change_of(before: float | None, now: float | None) -> float | None:
    """Return by what part of *before* the figure has grown; infinite where that was nothing."""
    if before is None or now is None:
        return None
    if before == now:
        return 0.0
    return (now - before) / before if before else math.inf
