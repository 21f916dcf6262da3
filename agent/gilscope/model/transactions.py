"""What is known of a live process that runs transactions, as plain values."""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from gilscope.model.gil import Tally, TracingCost
from gilscope.model.histogram import Histogram
from gilscope.values import dataclass

__all__ = [
    "Library",
    "Method",
    "StmObservation",
    "StmProcess",
    "StmRecording",
    "StmThread",
    "StmTotals",
]


class Library(Enum):
    """Whose transactions they are."""

    RPYTHON = "rpython"
    """stmgc, in PyPy-STM and other RPython programs."""
    LIBITM = "libitm"
    """GCC's, in programs that were compiled with -fgnu-tm."""


class Method(Enum):
    """How transactions are observed, and so what can be known of them."""

    EVENTS = "events"
    """RPython, while the program logs: the function that is given every event."""
    EVENTS_BASIC = "events_basic"
    """The same in a program of unknown version: begin, commit and abort alone."""
    ENTRIES = "entries"
    """RPython without a log: what transactions call as they begin and abort."""
    BEGINS = "begins"
    """RPython's C7 without a log: what begins transactions. Aborts call nothing that is named."""
    NAMES = "names"
    """libitm by the names of its functions; its restarts could not be found."""
    RESTARTS = "restarts"
    """libitm with its restarts."""

    @property
    def has_commit_times(self) -> bool:
        """Whether it is seen how long committed transactions took."""
        return self not in (Method.ENTRIES, Method.BEGINS)

    @property
    def has_aborts(self) -> bool:
        """Whether transactions that are tried again are seen."""
        return self not in (Method.NAMES, Method.BEGINS)

    @property
    def has_abort_costs(self) -> bool:
        """Whether it is seen how long tries had run that were aborted.

        Where RPython's waits are not seen nothing is told: they would be most of it.
        """
        return self in (Method.EVENTS, Method.RESTARTS)

    @property
    def has_waits(self) -> bool:
        """Whether waits inside of transactions are seen, and left out of the cost of an abort."""
        return self is Method.EVENTS


@dataclass(frozen=True, slots=True)
class StmProcess:
    """Who a traced process is."""

    pid: int
    name: str
    library: Library
    method: Method
    path: str
    """Of the file that the probes are in, as the process sees it."""
    build_id: str
    checks: tuple[str, ...] = ()
    """How each function was found, in words."""
    container_id: str | None = None
    pod_uid: str | None = None
    numbering: str | None = None
    """RPython: which table of events its numbers are from, None where all of them are not known."""


@dataclass(frozen=True, slots=True)
class StmThread:
    """What one thread has done so far."""

    tid: int
    """As the agent sees it."""
    name: str
    """As the kernel knows the thread."""
    committed: Tally
    """Time is 0 where the method does not see it."""
    aborted: Tally


@dataclass(frozen=True, slots=True)
class StmTotals:
    """Everything that has been counted of one process. What is None the method does not see."""

    at_ns: int
    """CLOCK_MONOTONIC."""
    commits: int
    committed: Histogram | None
    """Run time of RPython's transactions; of libitm's, the time from begin to commit."""
    aborts: int | None
    aborted: Histogram | None
    """From the begin of the try to its abort, without waits where these are seen."""
    cancels: int | None
    """libitm: transactions that the program itself has cancelled."""
    conflicts: int | None
    waits: Mapping[str, Tally] | None
    """By kind, those outside of transactions included."""
    collections: Mapping[str, Tally] | None
    """RPython: finished collections of garbage by generation, minor and major; part of the run
    time."""
    inevitable: Mapping[str, int]
    """How often a thread made its transaction one that cannot be aborted, by reason."""
    restarts: Mapping[str, int] | None
    """libitm: by reason."""
    threads: tuple[StmThread, ...]
    """Those that have ended a transaction, the busiest first."""
    lost_events: Mapping[str, int] = field(default_factory=dict)
    traps: int = 0


@dataclass(frozen=True, slots=True)
class StmObservation:
    """One process as a report or a scrape shows it."""

    process: StmProcess
    since_ns: int
    """CLOCK_MONOTONIC when the probes were in place."""
    totals: StmTotals
    invalid: str = ""
    """Why nothing is counted any more; empty: it is. What was counted before holds."""
    ended: bool = False
    """The process has exited or was replaced by another program."""
    cost: TracingCost | None = None
    observed_ns: int = 0
    """How much time the figures are of."""
    is_whole: bool = True
    """Whether that is all the time; else it is that of windows, as the budget allows."""


@dataclass(frozen=True, slots=True)
class StmRecording:
    """One process, observed for a while."""

    observation: StmObservation
    duration_ns: int
