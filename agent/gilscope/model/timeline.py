"""Waits and holds one by one."""

from dataclasses import dataclass

from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Stack

__all__ = ["Span", "Timeline"]


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
