"""What the probes ask the agent to look at."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from gilscope.bpf.ringbuf import Ring

__all__ = ["Notice", "NoticeKind", "take_notices"]


class NoticeKind(IntEnum):
    """``enum notice_kind`` of the probe."""

    EXEC = 0
    THREAD = 1
    RETURN = 2
    LOCK = 3
    WINDOW = 4
    SPANS = 5
    FORK = 6


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a probe asks the agent to look at."""

    kind: NoticeKind
    pid: int
    tid: int


def take_notices(ring: Ring) -> Iterator[Notice]:
    """Take and yield what is in *ring*, the probes' own of that name."""
    for record in ring.drain():
        yield Notice(NoticeKind(record["kind"]), record["tgid"], record["tid"])
