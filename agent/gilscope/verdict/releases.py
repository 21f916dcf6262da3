"""Finds calls that should not release the GIL, and calls that should."""

from collections.abc import Hashable

from gilscope.model.application import Application
from gilscope.model.gil import BriefRelease, ProcessTotals, Recording
from gilscope.model.moment.hold_state import State
from gilscope.model.stack import Frame, Stack
from gilscope.naming.application import application_frame
from gilscope.series.holders import code_of
from gilscope.values import dataclass

__all__ = ["KeepingCall", "brief_releases", "keeping_calls"]

_LEAST_SHARE = 0.01
"""Of the time recorded: what is less is not worth a change."""
_KEEPING = {State.NATIVE, State.SYSCALL}


@dataclass(frozen=True, slots=True)
class KeepingCall:
    """A call into C or the kernel that keeps the GIL while others wait for it."""

    frame: Frame | None
    """The function of the application that made it; None: there is none."""
    holder: Stack
    """Where that cost the most."""
    state: State
    detail: str
    """Which call it is; empty: not known."""
    lost_ns: int
    """What others have waited meanwhile."""


def brief_releases(recording: Recording) -> tuple[BriefRelease, ...] | None:
    """Return where the GIL was released for microseconds and paid for with longer waits.

    One for each line, the costliest first; those that cost a hundredth of the time recorded or
    more. None where releases are not seen.
    """
    if recording.brief_releases is None:
        return None
    lines: dict[tuple[Frame, ...], BriefRelease] = {}
    for each in recording.brief_releases:
        leaf = each.waiter.frames[:1]
        lines[leaf] = lines[leaf] + each if leaf in lines else each
    least_ns = _LEAST_SHARE * recording.duration_ns
    worth = (each for leaf, each in lines.items() if leaf and each.waited.ns >= least_ns)
    return tuple(sorted(worth, key=lambda each: -each.waited.ns))


def keeping_calls(
    totals: ProcessTotals, application: Application, duration_ns: int
) -> tuple[KeepingCall, ...]:
    """Return calls that keep the GIL although they could release it, the costliest first.

    The time that others have waited meanwhile is measured, and shared out among what the holder did
    by samples of it. Those that cost a hundredth of *duration_ns* or more.
    """
    sums: dict[Hashable, KeepingCall] = {}
    largest: dict[Hashable, int] = {}
    for each in totals.held_up:
        if each.state.state not in _KEEPING:
            continue
        frame = application_frame(each.holder, application)
        key = (code_of(each.holder, frame), each.state)
        known = sums.get(key)
        lost_ns = each.ns + (0 if known is None else known.lost_ns)
        is_largest = known is None or each.ns > largest[key]
        largest[key] = each.ns if is_largest else largest[key]
        sums[key] = KeepingCall(
            frame if is_largest or known is None else known.frame,
            each.holder if is_largest or known is None else known.holder,
            each.state.state,
            each.state.detail,
            lost_ns,
        )
    worth = (each for each in sums.values() if each.lost_ns >= _LEAST_SHARE * duration_ns)
    return tuple(sorted(worth, key=lambda each: -each.lost_ns))
