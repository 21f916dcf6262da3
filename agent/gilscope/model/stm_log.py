"""What is known of STM logs, as plain values."""

from collections.abc import Mapping
from dataclasses import field

from gilscope.model.histogram import EMPTY, Histogram
from gilscope.values import dataclass

__all__ = [
    "BINS",
    "Conflict",
    "Gap",
    "LogFile",
    "LogGroup",
    "LogTotals",
    "OverTime",
    "StmLog",
    "StmReport",
]

BINS = 256
"""Of every `OverTime` whose step was found while reading."""


@dataclass(frozen=True, slots=True)
class OverTime:
    """How often something happened in steps of equal length."""

    begin_ns: int
    """On the clock of the log."""
    step_ns: int
    counts: tuple[int, ...]
    """`BINS` of them, of which the last ones are unused; or those of a time line, exactly."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """All conflicts of one kind at the same places, added up."""

    kind: str
    """Name of the event, with its prefix ``STM_``."""
    markers: tuple[str, ...]
    """Positions as the log has them, this thread's first; without empty ones at the end."""
    lost_ns: int
    """Run time of the transactions that were aborted."""
    paused_ns: int
    count: int
    over_time: OverTime
    is_rest: bool = False
    """It stands for all places of its kind that there was no room for."""


@dataclass(frozen=True, slots=True)
class LogTotals:
    """Sums over all threads of a log; times add up over threads, and may exceed the log's own."""

    total_ns: int
    """From the first record to the last."""
    cpu_ns: int
    """Run time of all transactions that have ended: S0 and S1 do not tell by how they ended."""
    committed_ns: int = 0
    aborted_ns: int = 0
    paused_ns: int = 0
    """Waits within transactions that have ended."""
    commits: int = 0
    aborts: int = 0
    minor_gc_ns: int = 0
    major_gc_ns: int = 0
    detached_ns: int = 0
    """Outside, with an inevitable transaction left open. The original does not know this and what
    follows, and where its figures are shown it is 0."""
    paused_outside_ns: int = 0
    """Waits outside of transactions, nearly all for a free segment."""
    unfinished_ns: int = 0
    """In transactions without an end in the log, up to the last record of their threads."""
    unexplained_ns: int = 0
    """The part of the aborted time for which the log names no conflict."""
    unexplained: int = 0
    """Aborts without a conflict."""
    unlogged_commit_ns: int = 0
    """The part of the unfinished time of transactions that cannot but have been committed."""
    unlogged_commits: int = 0
    """Of these: inevitable ones that another thread has ended, without a record."""
    waits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By kind: time in ns, and number."""
    committed_runs: Histogram = EMPTY
    """Run time of transactions that were committed."""
    aborted_runs: Histogram = EMPTY


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that are no records."""

    offset: int
    nul_bytes: int
    """How many bytes at its beginning are NUL."""
    size: int
    """Bytes; 0 where only the clock tells that the log of another process begins."""


@dataclass(frozen=True, slots=True)
class StmLog:
    """One log: a whole file, a part of one between gaps, or several that were merged."""

    name: str
    layout: str
    """``L7a``, ``L7`` or ``L8``."""
    events_table: str
    semantics: str
    """``S0``, ``S1`` or ``S2``."""
    is_original: bool
    """Figures are those of the original tool, with what it loses."""
    offset: int
    """Of its first record in the file."""
    gap: Gap | None
    """In front of it."""
    records: int
    counts: Mapping[str, int]
    with_marker: Mapping[str, int]
    threads: int
    """Different thread numbers."""
    first_ns: int
    last_ns: int
    """Of the first and the last record; on the log's clock, which is not wall time."""
    span_ns: int
    """From the oldest to the newest record."""
    backward_timestamps: int
    totals: LogTotals
    conflicts: tuple[Conflict, ...]
    """The costliest first."""
    commits_over_time: OverTime
    aborts_over_time: OverTime


@dataclass(frozen=True, slots=True)
class LogFile:
    """All that was found in one file."""

    name: str
    size: int
    """Bytes that were read."""
    logs: tuple[StmLog, ...]
    """More than one where several processes wrote to it."""
    cut_tail_bytes: int
    """Of the record that it ends in."""
    trailing_gap: Gap | None
    """What follows the last log and could not be read."""


@dataclass(frozen=True, slots=True)
class LogGroup:
    """Logs that are reported as one."""

    summary: StmLog
    """Their sums; the log itself where there is only one."""
    logs: tuple[StmLog, ...]


@dataclass(frozen=True, slots=True)
class StmReport:
    """What a report is made of."""

    files: tuple[LogFile, ...]
    groups: tuple[LogGroup, ...]
    sources: Mapping[tuple[str, int], str]
    """Lines that were found now, by the file's name in the log and the line's number."""
    most_entries: int | None
    """To show of each group; None: as many as is usual."""
