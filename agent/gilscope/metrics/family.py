"""What is said of an exported metric."""

from types import ModuleType
from typing import Literal

from gilscope.values import dataclass

__all__ = [
    "PID",
    "PROCESS_LABELS",
    "Family",
    "Together",
    "Type",
    "families_of",
    "of_process",
    "of_transactions",
]

Type = Literal["counter", "gauge", "histogram"]
Together = Literal["sum", "max", "min"]

PID = "pid"
PROCESS_LABELS = ("process", PID, "container_id", "pod_uid")
"""On every series about a traced process; empty where unknown. Without a pid it is about a service:
all processes of that name in that container and pod."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One exported family of time series. There is one object for each."""

    name: str
    """As Prometheus stores it, without _bucket, _sum and _count."""
    type: Type
    help: str
    reads_as: str
    """One sentence for operators: what a high or low value means."""
    labels: tuple[str, ...] = ()
    together: Together = "sum"
    """What the processes of a service have together: the sum, or the highest or lowest value."""


def of_process(
    name: str, kind: Type, text: str, reads_as: str, *labels: str, together: Together = "sum"
) -> Family:
    """Return a family about a traced process."""
    return Family(name, kind, text, reads_as, (*PROCESS_LABELS, *labels), together)


def of_transactions(name: str, kind: Type, text: str, reads_as: str, *labels: str) -> Family:
    """Return a family about the transactions of a traced process or of a log."""
    # Of a live process, and then the log is empty, or of a log, and then nothing else is known.
    return of_process(name, kind, text, reads_as, "log", *labels)


def families_of(subject: ModuleType) -> tuple[Family, ...]:
    """Return the families in the table of a *subject*, in its order."""
    return tuple(each for each in vars(subject).values() if isinstance(each, Family))
