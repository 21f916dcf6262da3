"""Why threads wait for the GIL, what kind of loss that is, and how closely it is observed."""

from enum import Enum
from typing import Self

__all__ = ["Cause", "Kind", "Mode", "Numbered"]


class Numbered(Enum):
    """A word for people, and the number that stands for it in the kernel's tables."""

    number: int

    def __new__(cls, word: str, number: int) -> Self:
        """Make a member whose value is *word*."""
        member = object.__new__(cls)
        member._value_ = word
        member.number = number
        return member


class Mode(Enum):
    """How closely processes are observed."""

    CONTENTION = "contention"
    """Waits only; what nobody waits for costs nothing."""
    FULL = "full"
    """Every hold as well."""
    AUTO = "auto"
    """Waits always, holds in windows of full mode, as a budget allows."""


class Cause(Numbered):
    """Why a thread waits for the GIL."""

    BLOCKING_CALL = "blocking_call", 0
    """It came back from a call that had released the GIL."""
    PREEMPTION = "preemption", 1
    """The evaluation loop made it yield."""
    UNKNOWN = "unknown", 2
    """This build's evaluation loop could not be told apart from other callers."""


class Kind(Numbered):
    """What kind of loss a wait was: its cause, or a convoy."""

    BLOCKING_CALL = "GIL_BLOCKING_CALL", 0
    """Short, on the way back from a blocking call."""
    PREEMPTION = "GIL_PREEMPTION", 1
    UNKNOWN = "GIL_UNKNOWN", 2
    CONVOY = "GIL_CONVOY", 3
    """On the way back from a blocking call, and at least one switch interval long."""
