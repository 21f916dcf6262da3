"""Drives followers of logs in the working folder, for tests of what they do."""

from collections.abc import Callable
from pathlib import Path

from gilscope.stm_log.follow.follower import Follower
from gilscope.stm_log.sums import FollowedLog, LogSums, sums_of
from support.stm_log.reading import file_of

__all__ = ["Follow", "append", "caught_up", "only", "sums_in"]

Follow = Callable[..., Follower]
"""Makes a follower of some patterns."""


def sums_in(*contents: bytes) -> LogSums:
    """Return the sums of logs with these *contents*."""
    return sum((sums_of(file_of(content)) for content in contents), start=LogSums())


def only(follower: Follower) -> FollowedLog:
    """Return the only log that *follower* knows."""
    (log,) = follower.logs()
    return log


def caught_up(follower: Follower) -> FollowedLog:
    """Return the same when all that is there has been read."""
    follower.catch_up()
    return only(follower)


def append(name: str, content: bytes) -> None:
    """Let the log *name* grow by *content*."""
    with Path(name).open("ab") as log:
        log.write(content)
