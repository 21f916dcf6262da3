"""What the formats for flame graphs and profiles have in common: where threads waited for locks."""

from collections.abc import Iterator

from gilscope.model.locks import LockRecording, LockWait

__all__ = ["lost_waits"]


def lost_waits(recording: LockRecording) -> Iterator[LockWait]:
    """Yield the waits that have cost time; what threads were idle is none of it."""
    totals = recording.observation.totals
    for thread in () if totals is None else totals.threads:
        for wait in thread.waits:
            if wait.kind.is_contention and wait.wait_ns:
                yield wait
