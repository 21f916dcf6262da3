"""Says what has come to followed logs between two reads."""

from collections.abc import Iterable, Sequence

from gilscope.stm_log.sums import FollowedLog, LogSums, Loss, Place
from gilscope.values import dataclass

__all__ = ["Interval", "LogChange", "costliest", "interval"]


@dataclass(frozen=True, slots=True)
class LogChange:
    """What has come to one log."""

    log: FollowedLog
    """As it is now."""
    since: LogSums
    """What has come."""
    read_bytes: int
    """Of them."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The time between two reads."""

    length_ns: int
    changes: tuple[LogChange, ...]
    """Of all logs, also those in which nothing has changed."""


def interval(before: Iterable[FollowedLog], now: Iterable[FollowedLog], length_ns: int) -> Interval:
    """Return what has come between *before* and *now*, which are *length_ns* apart."""
    known = {log.name: log for log in before}
    changes = []
    for log in now:
        old = known.get(log.name)
        since = log.sums if old is None else log.sums - old.sums
        read_bytes = log.read_bytes - (0 if old is None else old.read_bytes)
        changes.append(LogChange(log, since, read_bytes))
    return Interval(length_ns, tuple(changes))


def costliest(sums: LogSums, most: int) -> Sequence[tuple[Place, Loss]]:
    """Return the places that have cost most, *most* of them at the most."""
    return sorted(sums.losses.items(), key=lambda item: (-item[1].ns, item[0]))[:most]
