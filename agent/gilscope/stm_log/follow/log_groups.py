"""Keeps the books of followed logs: one for a process and its forks, over all of their runs."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import field, replace

from gilscope.stm_log.sums import FollowedLog, LogSums, bounded
from gilscope.text.printable import printable
from gilscope.values import dataclass

__all__ = ["MOST_LOGS", "Family", "FileState", "LogGroups", "family_of"]

MOST_LOGS = 100
"""That are told apart; what comes later is added up under one name."""

_FORK = re.compile(r"(.+)\.fork\d+", re.DOTALL)
_OTHER = "other"
_MOST_PLACES = 4096
"""Of logs that have ended, in each family."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What is known of one file that is being followed."""

    size: int
    lag_bytes: int
    sums: LogSums


@dataclass(slots=True)
class Family:
    """What is known of all logs of one name."""

    name: str
    ended: LogSums = field(default_factory=LogSums)
    """Of logs that have been read to their ends."""
    read_bytes: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    problem: str = ""

    def note(self, reason: str, words: str) -> None:
        """Count something that could not be opened or understood."""
        self.errors[reason] += 1
        self.problem = words

    def keep(self, sums: LogSums) -> None:
        """Add what a log has come to that has ended."""
        self.ended = bounded(self.ended + sums, _MOST_PLACES)

    def followed(self, files: Iterable[FileState]) -> FollowedLog:
        """Return all that is known, with *files*, which are being followed."""
        states = tuple(files)
        sums = sum((state.sums for state in states), start=self.ended)
        return FollowedLog(
            name=self.name,
            files=len(states),
            size=sum(state.size for state in states),
            read_bytes=self.read_bytes,
            lag_bytes=sum(state.lag_bytes for state in states),
            sums=replace(sums, errors=dict(Counter(sums.errors) + self.errors)),
            problem=self.problem,
        )


class LogGroups:
    """All of them, in the order in which they occurred."""

    def __init__(self) -> None:
        self._by_name: dict[str, Family] = {}

    def of(self, path: str) -> Family:
        """Return the family to which a file belongs that is found at *path*."""
        # Names of files may be anything, and labels may not.
        name = printable(family_of(path))
        if name not in self._by_name and len(self._by_name) >= MOST_LOGS:
            name = _OTHER
        return self._by_name.setdefault(name, Family(name))

    def all(self) -> tuple[Family, ...]:
        """Return them."""
        return tuple(self._by_name.values())


def family_of(name: str) -> str:
    """Return the name of the log of the process that has written *name*, or forked its writer."""
    found = _FORK.fullmatch(name)
    return found[1] if found else name
