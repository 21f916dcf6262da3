"""The faults by name: what happens in each, what is expected, and how one fails."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faults.bench import Bench

__all__ = ["Check", "Failed", "Fault", "NotHere", "Verdict", "all_faults", "fault"]

_SUBJECTS = Path(__file__).with_name("subjects")
_LIMIT_S = 300.0

Check = Callable[["Bench"], None]
"""Lets the fault happen and raises Failed, or says so on the bench, where it does harm."""


class Verdict(StrEnum):
    """How a fault can end badly, the worst first."""

    TARGET_HARMED = "TARGET HARMED"
    AGENT_DIED = "AGENT DIED"
    WRONG_NUMBER = "WRONG NUMBER"
    HANGS = "HANGS"
    LEAK = "LEAK"
    UNCLEAR_MESSAGE = "UNCLEAR MESSAGE"
    BROKEN = "THE CHECK BROKE"
    """Nothing is known of gilscope: the program that plays the fault failed itself."""


class Failed(Exception):
    """A fault did harm."""

    def __init__(self, verdict: Verdict, seen: str) -> None:
        super().__init__(f"{verdict}: {seen}")
        self.verdict = verdict
        self.seen = seen


class NotHere(Exception):
    """This machine cannot play the fault; the message says why."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the matrix."""

    name: str
    what: str
    """What happens; what is expected."""
    check: Check
    subject: str
    in_half: bool
    """Whether it is quick and telling enough for every run of the tests."""
    limit_s: float
    """A fault that is not over after this hangs."""
    has_own_mounts: bool
    """Whether it mounts something: it gets a mount namespace of its own."""
    opt_in: str
    """Why it is only run where it is named; empty for all others."""


_FAULTS: dict[str, Fault] = {}


def fault(  # noqa: PLR0913 - all but two have a default
    name: str,
    what: str,
    *,
    half: bool = False,
    limit_s: float = _LIMIT_S,
    mounts: bool = False,
    opt_in: str = "",
) -> Callable[[Check], Check]:
    """Register the decorated function as the fault *name*; raises ValueError if that is taken."""

    def register(check: Check) -> Check:
        if name in _FAULTS:
            raise ValueError(f"two faults are called {name}")
        subject = check.__module__.rpartition(".")[2]
        _FAULTS[name] = Fault(name, what, check, subject, half, limit_s, mounts, opt_in)
        return check

    return register


def all_faults() -> dict[str, Fault]:
    """Return every fault by its name, those of one subject together."""
    for path in sorted(_SUBJECTS.glob("*.py")):
        importlib.import_module(f"faults.subjects.{path.stem}")
    return dict(_FAULTS)
