"""What doctor says: checks of the machine, of one process, and a line for each Python."""

from collections.abc import Iterable
from enum import Enum

from gilscope.values import dataclass

__all__ = [
    "Check",
    "Diagnosis",
    "ProcessDiagnosis",
    "PythonLine",
    "Status",
    "TrapCost",
    "first_failure",
    "has_failed",
]


class Status(Enum):
    """How a check went."""

    OK = "ok"
    WARNING = "warning"
    """Something is less good than it could be; gilscope works."""
    MISSING = "missing"
    """gilscope does not work without it."""
    UNKNOWN = "unknown"
    """It could not be found out, because of something that is missing."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked."""

    name: str
    status: Status
    found: str
    """The fact, in words."""
    remedy: str = ""
    """The command or the setting that fixes it."""
    exit_code: int = 0
    """Where it is missing: the code of `gilscope.errors` that the other commands would end with."""


@dataclass(frozen=True, slots=True)
class TrapCost:
    """What a traced process pays each time that it runs into a probe."""

    full_ns: float
    """Where the GIL is acquired or released, which traps in full mode and in windows only."""
    contention_ns: float
    """On the way to a wait and back."""
    stepped_ns: float
    """Where the kernel cannot emulate the instruction and single-steps it."""
    is_measured: bool
    """False: it could not be, and numbers on the safe side are used instead."""


@dataclass(frozen=True, slots=True)
class ProcessDiagnosis:
    """One process, examined from all sides. What is None could not be found out."""

    pid: int
    name: str
    checks: tuple[Check, ...]
    python: str | None = None
    build_id: str | None = None
    path: str | None = None
    """Of the interpreter's file, as the process sees it."""
    opened_as: str | None = None
    """Under which path the agent opens that file."""
    method: str | None = None
    """``sites`` or ``libc``."""
    sites: dict[str, int] | None = None
    """Sites method: how many of each kind."""
    gils: tuple[int, ...] | None = None
    """The ids of the interpreters that own a GIL."""
    threads: int | None = None
    """Threads that Python knows of."""


@dataclass(frozen=True, slots=True)
class PythonLine:
    """One Python of this host in a word or two."""

    pid: int
    name: str
    python: str | None
    method: str | None
    reason: str = ""
    """Why it cannot be traced; empty: it can."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that one run of doctor has found."""

    checks: tuple[Check, ...]
    process: ProcessDiagnosis | None = None
    processes: tuple[PythonLine, ...] | None = None
    unreadable: int = 0
    """With *processes*: how many others could not be inspected, so may be Pythons or not."""
    features: tuple[Check, ...] = ()
    """What works here in which way; none of it decides about the exit code."""
    trap_cost: TrapCost | None = None
    """None: the probes could not be tried."""

    @property
    def exit_code(self) -> int:
        """0, or the code of the first thing that is missing."""
        failure = first_failure(self.checks)
        if failure is None and self.process is not None:
            failure = first_failure(self.process.checks)
        return failure.exit_code if failure else 0


def first_failure(checks: Iterable[Check]) -> Check | None:
    """Return the first check whose subject is missing, or None."""
    return next((check for check in checks if check.status is Status.MISSING), None)


def has_failed(checks: Iterable[Check], *names: str) -> str | None:
    """Return the first of *names* whose check found something missing, or None."""
    failed = {check.name for check in checks if check.status is Status.MISSING}
    return next((name for name in names if name in failed), None)
