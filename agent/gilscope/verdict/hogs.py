"""Finds the code that keeps the GIL although it has been asked to drop it."""

from collections.abc import Hashable

from gilscope.model.application import Application
from gilscope.model.gil import ProcessTotals, SlowDrop, Tally
from gilscope.model.stack import Frame, Stack
from gilscope.naming.application import application_frame
from gilscope.naming.hold_states import TellingState
from gilscope.series.holders import code_of, losses_by_holder
from gilscope.values import dataclass
from gilscope.verdict.degree import HOG_SHARE

__all__ = ["Hog", "hog_of"]


@dataclass(frozen=True, slots=True)
class Hog:
    """A function that is slow to drop the GIL for a good part of the time."""

    holder: Stack
    """Where that cost the most."""
    frame: Frame | None
    """The innermost frame of the application there; None: there is none."""
    drop_latency: Tally
    longest_ns: int
    in_flight_ns: int
    """How long the request has lasted that is not answered yet; 0: there is none."""
    states: tuple[TellingState, ...] = ()
    """Why it kept the GIL, by samples; empty: not known."""


def hog_of(totals: ProcessTotals, application: Application, duration_ns: int) -> Hog | None:
    """Return the costliest hog of *duration_ns*; None where requests are answered soon enough."""
    groups: dict[Hashable, list[SlowDrop]] = {}
    for slow_drop in totals.slow_drops:
        frame = application_frame(slow_drop.holder, application)
        groups.setdefault(code_of(slow_drop.holder, frame), []).append(slow_drop)
    losses = losses_by_holder(totals.edges, application, totals.held_up)
    states = {code_of(loss.costliest, loss.frame): loss.states for loss in losses}
    hogs = [_hog(group, application, states.get(code, ())) for code, group in groups.items()]
    lost_ns = sum(hog.drop_latency.ns for hog in hogs)
    if not hogs or lost_ns < HOG_SHARE * duration_ns:
        return None
    return max(hogs, key=lambda hog: hog.drop_latency.ns)


def _hog(group: list[SlowDrop], application: Application, states: tuple[TellingState, ...]) -> Hog:
    holder = max(group, key=lambda slow_drop: slow_drop.drop_latency.ns).holder
    return Hog(
        holder,
        application_frame(holder, application),
        sum((slow_drop.drop_latency for slow_drop in group), start=Tally()),
        max(slow_drop.longest_ns for slow_drop in group),
        max(slow_drop.in_flight_ns for slow_drop in group),
        states,
    )
