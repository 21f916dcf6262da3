"""Waits and holds one by one, and the moment at which most was waited for."""

from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Stack
from gilscope.values import dataclass

__all__ = ["Moment", "Span", "Timeline"]


@dataclass(frozen=True, slots=True)
class Span:
    """One wait or one hold of one thread, for the timeline."""

    tid: int
    interpreter_id: int
    began_ns: int
    ended_ns: int
    """Both CLOCK_MONOTONIC."""
    kind: Kind | None
    """Of a wait; None: it is a hold."""
    stack: Stack = UNKNOWN_STACK
    """Where the waiting thread stood; holds have none."""
    holder: Stack = UNKNOWN_STACK
    """Where the thread stood that a wait was begun behind."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Waits, and in full mode holds, one by one in the order of their ends."""

    spans: tuple[Span, ...]
    dropped: int
    """How many more there were, which nobody could take over in time."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The part of a recording in which its threads waited most."""

    began_ns: int
    ended_ns: int
    """Both CLOCK_MONOTONIC."""
    spans: tuple[Span, ...]
    """Those that reach into it, in the order of their ends, and of each lock the last wait that
    ended before. Short holds may be left out."""
    unseen: tuple[tuple[int, int], ...] = ()
    """When waits were not sent one by one, because there were too many: from, to."""
    chosen_among: int = 0
    """How many waits had been sent, of all the recording."""
    has_holds: bool = False
    """Whether holds were seen, and not only waits."""
