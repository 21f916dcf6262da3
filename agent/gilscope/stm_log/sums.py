"""Adds up what the logs of a program say, also of runs that have ended, and never runs back."""

from collections.abc import Mapping
from dataclasses import field, replace

from gilscope.model.fieldwise import added, larger, left
from gilscope.model.histogram import EMPTY, Histogram, total
from gilscope.model.stm_log import LogFile
from gilscope.stm_log.markers import without_offset
from gilscope.values import dataclass

__all__ = ["FollowedLog", "LogSums", "Loss", "Place", "bounded", "sums_of"]

Place = tuple[str, tuple[str, ...], bool]
"""Kind and markers of a conflict, without bytecode offsets, and whether it stands for a rest."""

_UNKNOWN_EVENT = "STM_UNKNOWN_EVENT"


@dataclass(frozen=True, slots=True)
class Loss:
    """What conflicts at one place have cost."""

    lost_ns: int = 0
    paused_ns: int = 0
    count: int = 0

    def __add__(self, other: "Loss") -> "Loss":
        return added(self, other)

    @property
    def ns(self) -> int:
        """All the time."""
        return self.lost_ns + self.paused_ns


_NOTHING = Loss()


@dataclass(frozen=True, slots=True)
class LogSums:
    """What is in one log or in several, as far as it only grows."""

    records: int = 0
    commits: int = 0
    aborts: int = 0
    committed_runs: Histogram = EMPTY
    aborted_runs: Histogram = EMPTY
    minor_gc_ns: int = 0
    major_gc_ns: int = 0
    waits_ns: Mapping[str, int] = field(default_factory=dict)
    """By kind, those outside of transactions included."""
    losses: Mapping[Place, Loss] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    """How often there was what could not be understood, by reason."""

    def __add__(self, other: "LogSums") -> "LogSums":
        return added(self, other)

    def __sub__(self, earlier: "LogSums") -> "LogSums":
        """Return what has come since *earlier*, which must be older sums of the same logs."""
        return left(self, earlier)

    def at_least(self, shown: "LogSums") -> "LogSums":
        """Return these sums, but where *shown* has more, as much as that.

        The first records of a log may turn out to be of another table of events than they seemed
        to be. Only then any of its sums become smaller, and counters must not.
        """
        return larger(self, shown)


@dataclass(frozen=True, slots=True)
class FollowedLog:
    """The logs of one name: that of a process and those of its forks, of this run and earlier."""

    name: str
    files: int
    """That are being followed now."""
    size: int
    """Of these files."""
    read_bytes: int
    """Of all files since the follower began."""
    lag_bytes: int
    """Written, and not read yet."""
    sums: LogSums
    problem: str = ""
    """The latest thing that could not be understood or opened, in words; empty: there was none."""

    @property
    def lost_ns(self) -> int:
        """All time that conflicts have cost, pauses included."""
        return sum(loss.ns for loss in self.sums.losses.values())


def sums_of(file: LogFile) -> LogSums:
    """Return the sums over all logs in *file*."""
    losses: dict[Place, Loss] = {}
    waits_ns: dict[str, int] = {}
    for log in file.logs:
        for each in log.conflicts:
            place = (each.kind, without_offset(each.markers), each.is_rest)
            loss = Loss(each.lost_ns, each.paused_ns, each.count)
            losses[place] = losses[place] + loss if place in losses else loss
        for kind, (ns, _) in log.totals.waits.items():
            waits_ns[kind] = waits_ns.get(kind, 0) + ns
    totals = [log.totals for log in file.logs]
    return LogSums(
        records=sum(log.records for log in file.logs),
        commits=sum(each.commits for each in totals),
        aborts=sum(each.aborts for each in totals),
        committed_runs=total(each.committed_runs for each in totals),
        aborted_runs=total(each.aborted_runs for each in totals),
        minor_gc_ns=sum(each.minor_gc_ns for each in totals),
        major_gc_ns=sum(each.major_gc_ns for each in totals),
        waits_ns=waits_ns,
        losses=losses,
        errors={reason: count for reason, count in _errors(file).items() if count},
    )


def bounded(sums: LogSums, most: int) -> LogSums:
    """Return *sums* with *most* places, the costliest; the others are added up by kind."""
    if len(sums.losses) <= most:
        return sums
    costliest = sorted(sums.losses.items(), key=lambda item: -item[1].ns)
    losses = dict(costliest[:most])
    for (kind, _, _), loss in costliest[most:]:
        rest = (kind, (), True)
        losses[rest] = losses.get(rest, _NOTHING) + loss
    return replace(sums, losses=losses)


def _errors(file: LogFile) -> dict[str, int]:
    unknown = sum(
        count
        for log in file.logs
        for name, count in log.counts.items()
        if name.startswith(_UNKNOWN_EVENT)
    )
    # Between two parts there is one gap, also where only the clock tells of it.
    return {
        "gap": max(0, len(file.logs) - 1) + (file.trailing_gap is not None),
        "unknown_event": unknown,
    }
