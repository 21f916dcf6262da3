"""What the probes ask the agent to check."""

from collections.abc import Iterator

from gilscope.bpf.ringbuf import Ring
from gilscope.gil.abi import NoticeKind
from gilscope.values import dataclass

__all__ = ["Notice", "take_notices"]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a probe asks the agent to check."""

    kind: NoticeKind
    pid: int
    tid: int


def take_notices(ring: Ring) -> Iterator[Notice]:
    """Take and yield what is in *ring*, the probes' own of that name."""
    for record in ring.drain():
        yield Notice(NoticeKind(record["kind"]), record["tgid"], record["tid"])
