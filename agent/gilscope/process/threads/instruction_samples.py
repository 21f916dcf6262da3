"""Whether a thread runs, and where in its code, by the kernel's own clock for it.

For a millisecond at most.
"""

import os
import struct
import time
from collections.abc import Iterable, Iterator
from typing import Final

from gilscope.process.threads.thread_event import (
    NO_SAMPLES,
    SAMPLE_IP,
    Sampling,
    recorded,
    thread_event,
)

__all__ = ["parse_samples", "ran_ns", "sampled_instructions"]

_SAMPLING: Final = Sampling(period_ns=100_000, what=SAMPLE_IP)
_INSTRUCTION: Final = struct.Struct("=Q")


def ran_ns(tid: int, for_s: float) -> int:
    """Return how much of the next *for_s* thread *tid* is on a CPU; raises as the other does."""
    with thread_event(tid, NO_SAMPLES) as fd:
        time.sleep(for_s)
        # An event of a thread is enabled while that is on a CPU.
        return int(struct.unpack("=QQ", os.read(fd, 16))[1])


def sampled_instructions(tid: int, for_s: float) -> tuple[int, ...]:
    """Return the instructions of its own, not the kernel's, at which *tid* is for as long as that.

    One for each 0.1 ms that it runs. Raises OSError where the thread has gone, or perf events are
    not permitted.
    """
    return tuple(parse_samples(recorded(tid, _SAMPLING, for_s, pages=1)))


def parse_samples(samples: Iterable[bytes]) -> Iterator[int]:
    """Yield the instruction of each of *samples*."""
    for sample in samples:
        if len(sample) >= _INSTRUCTION.size:
            yield int(_INSTRUCTION.unpack_from(sample)[0])
