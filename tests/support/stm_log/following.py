"""Followed logs made of contents, for tests of what is shown of them."""

from gilscope.stm_log.sums import FollowedLog, LogSums, sums_of
from support.stm_log.reading import file_of

__all__ = ["followed_log"]


def followed_log(
    *contents: bytes, name: str = "app.log", lag_bytes: int = 0, problem: str = ""
) -> FollowedLog:
    """Return what a follower knows that has read *contents* in files of one name."""
    size = sum(map(len, contents))
    return FollowedLog(
        name=name,
        files=len(contents),
        size=size + lag_bytes,
        read_bytes=size,
        lag_bytes=lag_bytes,
        sums=sum((sums_of(file_of(content)) for content in contents), start=LogSums()),
        problem=problem,
    )
