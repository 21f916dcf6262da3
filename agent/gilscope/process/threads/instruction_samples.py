"""Whether a thread runs, and where in its code, by the kernel's own clock for it.

A perf event of the kind that needs no hardware (PERF_COUNT_SW_CPU_CLOCK), for one thread and for a
millisecond at most: each sample costs it a timer interrupt, and nothing is put into its process.
Layouts are those of <linux/perf_event.h>, the same on every 64-bit machine.
"""

import contextlib
import ctypes
import mmap
import os
import struct
import time
from collections.abc import Iterator
from typing import Final

from gilscope.system.syscall import call

__all__ = ["parse_samples", "ran_ns", "sampled_instructions"]

_SOFTWARE, _CPU_CLOCK, _SAMPLE_IP, _TIME_ENABLED = 1, 0, 1, 1
_EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 5, 1 << 6
_ATTRIBUTES: Final = struct.Struct("=IIQQQQQ")
_SIZE: Final = 64
"""PERF_ATTR_SIZE_VER0: what every kernel takes."""
_CLOSE_ON_EXEC: Final = 1 << 3
_PERIOD_NS: Final = 100_000
_RECORD_SAMPLE: Final = 9
_HEADER: Final = struct.Struct("=IHH")
_INSTRUCTION: Final = struct.Struct("=Q")
_DATA_HEAD: Final = 1024
"""In the first page: how many bytes have been written so far (struct perf_event_mmap_page)."""


def ran_ns(tid: int, for_s: float) -> int:
    """Return how much of the next *for_s* thread *tid* is on a CPU; raises as the other does."""
    with _event(tid, 0) as fd:
        time.sleep(for_s)
        # An event of a thread is enabled while that is on a CPU.
        return int(struct.unpack("=QQ", os.read(fd, 16))[1])


def sampled_instructions(tid: int, for_s: float) -> tuple[int, ...]:
    """Return the instructions of its own, not the kernel's, at which *tid* is for as long as that.

    One for each 0.1 ms that it runs. Raises OSError where the thread has gone, or perf events are
    not permitted.
    """
    with _event(tid, _PERIOD_NS) as fd, mmap.mmap(fd, 2 * mmap.PAGESIZE) as pages:
        time.sleep(for_s)
        (written,) = _INSTRUCTION.unpack_from(pages, _DATA_HEAD)
        content = pages[mmap.PAGESIZE : mmap.PAGESIZE + min(written, mmap.PAGESIZE)]
    return tuple(parse_samples(content))


@contextlib.contextmanager
def _event(tid: int, period_ns: int) -> Iterator[int]:
    """Open an event of *tid* for a while, with samples unless *period_ns* is 0."""
    attributes = _ATTRIBUTES.pack(
        *(_SOFTWARE, _SIZE, _CPU_CLOCK, period_ns, _SAMPLE_IP if period_ns else 0, _TIME_ENABLED),
        _EXCLUDE_KERNEL | _EXCLUDE_HV,
    )
    held = ctypes.create_string_buffer(attributes, _SIZE)
    fd = call("perf_event_open", held, tid, -1, -1, ctypes.c_ulong(_CLOSE_ON_EXEC))
    try:
        yield fd
    finally:
        os.close(fd)


def parse_samples(content: bytes) -> Iterator[int]:
    """Yield the instruction of each sample among the records of *content*."""
    at = 0
    while at + _HEADER.size <= len(content):
        kind, _, size = _HEADER.unpack_from(content, at)
        if size < _HEADER.size or at + size > len(content):
            return
        if kind == _RECORD_SAMPLE and size >= _HEADER.size + _INSTRUCTION.size:
            yield int(_INSTRUCTION.unpack_from(content, at + _HEADER.size)[0])
        at += size
