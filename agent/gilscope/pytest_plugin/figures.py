"""What one test has lost waiting for the GIL, and the budget that it may have for that."""

import argparse
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from gilscope.commands.numbers import seconds_between
from gilscope.text.units import NS_PER_S, counted, percent, short_duration
from gilscope.values import dataclass

__all__ = ["Budget", "Loss", "Sums", "budget_of", "loss_between"]

_LONGEST_S = 1e6
_time = seconds_between(0, _LONGEST_S)

Sums = Mapping[str, Any]
"""What has been counted of this process up to one instant: a line of the child, from JSON."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What the threads of this process lost between two instants."""

    wait_ns: int
    waits: int
    duration_ns: int
    places: Mapping[str, int] = field(default_factory=dict)
    """Nanoseconds of it by whose code kept the GIL, the costliest first."""

    @property
    def share(self) -> float:
        """Return how many threads were waiting on average."""
        return self.wait_ns / max(1, self.duration_ns)

    @property
    def costliest(self) -> str:
        """Return whose code cost the most; empty where nothing was lost, or it is not known."""
        return next(iter(self.places), "")

    def __str__(self) -> str:
        """Return it in words, which stand after "lost"."""
        return (
            f"{short_duration(self.wait_ns)} in {counted(self.waits, 'wait')}, "
            f"{percent(self.share)} of its {short_duration(self.duration_ns)}"
        )


def loss_between(before: Sums, after: Sums) -> Loss:
    """Return what was lost from one instant to the other."""
    earlier = before["places"]
    places = {place: ns - earlier.get(place, 0) for place, ns in after["places"].items()}
    return Loss(
        wait_ns=max(0, after["wait_ns"] - before["wait_ns"]),
        waits=max(0, after["waits"] - before["waits"]),
        duration_ns=after["at_ns"] - before["at_ns"],
        places=dict(sorted(_by_function(places).items(), key=lambda each: -each[1])),
    )


def _by_function(places: Mapping[str, int]) -> Mapping[str, int]:
    """Return *places*, each ``function (file:line)``, by function, with its costliest line."""
    functions: dict[str, list[tuple[int, str]]] = {}
    for place, ns in places.items():
        if ns > 0:
            functions.setdefault(place.rpartition(":")[0] or place, []).append((ns, place))
    return {max(lines)[1]: sum(ns for ns, _ in lines) for lines in functions.values()}


@dataclass(frozen=True, slots=True)
class Budget:
    """What a test may lose; None: as much as it likes, in that respect."""

    wait_ns: int | None = None
    share: float | None = None

    def passed_by(self, loss: Loss) -> str:
        """Return in words that *loss* is more than that; empty: it is not."""
        over = []
        if self.wait_ns is not None and loss.wait_ns > self.wait_ns:
            over.append(short_duration(self.wait_ns))
        if self.share is not None and loss.share > self.share:
            over.append(f"{percent(self.share)} of its time")
        if not over:
            return ""
        words = f"lost {loss} waiting for the GIL; its budget is {' and '.join(over)}"
        if not loss.costliest:
            return words
        # Places are known a moment later than waits, and may have some of the time before.
        cost = short_duration(min(loss.wait_ns, loss.places[loss.costliest]))
        return f"{words}\ncostliest: {cost} while {loss.costliest} kept the GIL"


def budget_of(
    *words: object, wait: object = None, share: object = None, **unknown: object
) -> Budget:
    """Return the budget that a marker's arguments say; raises ValueError, in words."""
    if words or unknown or (wait is None and share is None):
        raise ValueError('gil_budget takes wait="100ms", share=0.2, or both')
    return Budget(
        None if wait is None else _wait_ns(wait), None if share is None else _share(share)
    )


def _wait_ns(wait: object) -> int:
    try:
        return round(_time(str(wait)) * NS_PER_S)
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"gil_budget: {error}") from error


def _share(share: object) -> float:
    is_number = isinstance(share, int | float) and not isinstance(share, bool)
    if not is_number or not float(str(share)) >= 0:
        raise ValueError(f"gil_budget: share is a number such as 0.2, not {share!a}")
    return float(str(share))
