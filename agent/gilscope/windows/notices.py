"""What the probes tell at once of processes that are observed in windows."""

from typing import Final

from gilscope.bpf.c_header import CStruct, Member
from gilscope.bpf.ringbuf import Ring
from gilscope.values import dataclass

__all__ = ["NOTICE", "Notices", "take_notices"]

NOTICE: Final = CStruct(
    "notice",
    "A process whose window has ended by itself, or which has a child with a copy of its memory.",
    (Member("u32", "tgid"), Member("u32", "is_fork")),
)


@dataclass(frozen=True, slots=True)
class Notices:
    """Processes that something is to be done about."""

    ended_windows: frozenset[int]
    """Whose windows have used up their allowance."""
    forked: frozenset[int]
    """That have a child with a copy of their memory."""


def take_notices(ring: Ring) -> Notices:
    """Take and return what is in *ring*."""
    notices = list(ring.drain())
    return Notices(
        frozenset(notice["tgid"] for notice in notices if not notice["is_fork"]),
        frozenset(notice["tgid"] for notice in notices if notice["is_fork"]),
    )
