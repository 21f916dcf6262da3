"""What is said of an exported metric."""

from dataclasses import dataclass
from types import ModuleType
from typing import Literal

__all__ = ["PROCESS_LABELS", "Family", "Type", "families_of", "of_process", "of_transactions"]

Type = Literal["counter", "gauge", "histogram"]

PROCESS_LABELS = ("process", "pid", "container_id", "pod_uid")
"""On every series about a traced process; empty where unknown."""


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


def of_process(name: str, kind: Type, text: str, reads_as: str, *labels: str) -> Family:
    """Return a family about a traced process."""
    return Family(name, kind, text, reads_as, (*PROCESS_LABELS, *labels))


def of_transactions(name: str, kind: Type, text: str, reads_as: str, *labels: str) -> Family:
    """Return a family about the transactions of a traced process or of a log."""
    # Of a live process, and then the log is empty, or of a log, and then nothing else is known.
    return of_process(name, kind, text, reads_as, "log", *labels)


def families_of(subject: ModuleType) -> tuple[Family, ...]:
    """Return the families in the table of a *subject*, in its order."""
    return tuple(each for each in vars(subject).values() if isinstance(each, Family))
