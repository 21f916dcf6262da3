"""Sums up by whose code the GIL was held, whether anybody waited for it or not."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable

from gilscope.model.application import Application
from gilscope.model.gil import HeldBy, HolderSamples
from gilscope.model.stack import Frame, Stack
from gilscope.naming.application import application_frame
from gilscope.naming.hold_states import TellingState, telling_states
from gilscope.series.holders import code_of
from gilscope.values import dataclass

__all__ = ["HeldPlace", "held_places", "share_error"]

_DEVIATIONS = 1.96 * 1.04
"""From the mean, within which 95 % are, for gaps that vary."""


@dataclass(frozen=True, slots=True)
class HeldPlace:
    """What the GIL was held for in one function of the application."""

    frame: Frame | None
    """Of that function, with the line that it was in longest; None: no frame of the holder is of
    the application."""
    costliest: Stack
    """The holder's stack that was there longest."""
    share: float
    """Of the time."""
    error: float
    """By how much the share may be off, in 19 of 20 cases."""
    states: tuple[TellingState, ...] = ()
    """What the holder did meanwhile."""
    calls: tuple[str, ...] = ()
    """Those that led from there to the C code that it was in longest, if they were asked for."""


def held_places(samples: HolderSamples, application: Application) -> tuple[HeldPlace, ...]:
    """Return the functions of *application* in which the GIL was held, the longest first."""
    groups: dict[Hashable, list[tuple[HeldBy, Frame | None]]] = {}
    for held in samples.holders:
        frame = application_frame(held.holder, application)
        groups.setdefault(code_of(held.holder, frame), []).append((held, frame))
    places = [_place(group, samples) for group in groups.values()]
    return tuple(sorted(places, key=lambda place: -place.share))


def share_error(share: float, samples: int) -> float:
    """Return by how much *share* may be off after so many samples, in 19 of 20 cases."""
    inside = min(1.0, max(0.0, share))
    # None of n samples, or all of them, leave room for a share of 3 in n.
    at_least = 3.0 / max(1, samples)
    return max(_DEVIATIONS * math.sqrt(inside * (1 - inside) / max(1, samples)), at_least)


def _place(group: list[tuple[HeldBy, Frame | None]], samples: HolderSamples) -> HeldPlace:
    by_line: Counter[Frame | None] = Counter()
    by_stack: Counter[Stack] = Counter()
    for held, frame in group:
        by_line[frame] += held.held_ns
        by_stack[held.holder] += held.held_ns
    share = sum(by_line.values()) / max(1, samples.sampled_ns)
    return HeldPlace(
        frame=max(by_line, key=by_line.__getitem__),
        costliest=max(by_stack, key=by_stack.__getitem__),
        share=share,
        error=share_error(share, samples.samples),
        states=telling_states((held.state, held.held_ns) for held, _ in group),
        calls=_costliest_calls(held for held, _ in group),
    )


def _costliest_calls(group: Iterable[HeldBy]) -> tuple[str, ...]:
    by_calls: Counter[tuple[str, ...]] = Counter()
    for held in group:
        if held.state.calls:
            by_calls[held.state.detail, *held.state.calls] += held.held_ns
    return max(by_calls, key=by_calls.__getitem__, default=())
