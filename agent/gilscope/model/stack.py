"""A Python stack as plain values: frames, and how much of them is known."""

from enum import Enum

from gilscope.values import dataclass

__all__ = ["UNKNOWN_FRAME", "UNKNOWN_STACK", "Frame", "Stack", "StackState"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One Python function on a thread's stack."""

    function: str
    """Qualified name where the version stores one (3.11+), else the plain name."""
    file: str
    first_line: int
    """The line of the ``def``."""
    line: int | None = None
    """The line that was executing; None where only the function is known."""


class StackState(Enum):
    """How much of a thread's Python stack was seen."""

    WHOLE = "whole"
    CUT = "cut"
    """It is deeper than what is noted; the outermost frames are missing."""
    TORN = "torn"
    """It changed while it was being read; the innermost frames are missing."""
    NO_PYTHON = "no_python"
    """The thread ran no Python code."""
    UNKNOWN = "unknown"
    """It could not be read, or nobody can tell whose it would have been."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What one end of a wait stood in."""

    frames: tuple[Frame, ...]
    """Innermost first; empty for `NO_PYTHON` and `UNKNOWN`."""
    state: StackState = StackState.WHOLE

    @property
    def is_known(self) -> bool:
        """Whether it says where the thread stood."""
        return self.state is not StackState.UNKNOWN


UNKNOWN_STACK = Stack((), StackState.UNKNOWN)


UNKNOWN_FRAME = Frame("unknown", "", 0)
"""In place of a frame whose code object is not there any more, or never was."""
