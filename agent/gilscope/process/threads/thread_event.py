"""Perf events of one thread, of the kind that needs no hardware, and the records that they leave.

PERF_COUNT_SW_CPU_CLOCK runs while the thread is on a CPU: each sample costs it a timer interrupt,
and nothing is put into its process. Layouts are those of <linux/perf_event.h>, the same on every
64-bit machine.
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
from gilscope.values import dataclass

__all__ = ["NO_SAMPLES", "SAMPLE_IP", "Sampling", "recorded", "records", "thread_event"]

SAMPLE_IP: Final = 1
_SOFTWARE, _CPU_CLOCK, _TIME_ENABLED = 1, 0, 1
_EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 5, 1 << 6
_ATTRIBUTES: Final = struct.Struct("=IIQQQQQ")
_STACK_ATTRIBUTES: Final = struct.Struct("=QQQQQII")
"""What follows them: of no interest up to the sampled registers and bytes of the stack."""
_SIZE: Final = 64
"""PERF_ATTR_SIZE_VER0: what every kernel takes."""
_STACK_SIZE: Final = 96
"""PERF_ATTR_SIZE_VER3: with registers and stacks, since Linux 3.7."""
_CLOSE_ON_EXEC: Final = 1 << 3
_RECORD_SAMPLE: Final = 9
_HEADER: Final = struct.Struct("=IHH")
_NUMBER: Final = struct.Struct("=Q")
_DATA_HEAD: Final = 1024
"""In the first page: how many bytes have been written so far (struct perf_event_mmap_page)."""

_PATIENCE: Final = 6


@dataclass(frozen=True, slots=True)
class Sampling:
    """What is sampled, and how often."""

    period_ns: int = 0
    """Of CPU time; 0: there are no samples."""
    what: int = 0
    """PERF_SAMPLE_ flags."""
    registers: int = 0
    """A bit for each register."""
    stack_bytes: int = 0


NO_SAMPLES: Final = Sampling()


@contextlib.contextmanager
def thread_event(tid: int, sampling: Sampling) -> Iterator[int]:
    """Open an event of *tid* for a while.

    Raises OSError where the thread has gone, or perf events are not permitted.
    """
    size = _STACK_SIZE if sampling.stack_bytes else _SIZE
    attributes = _ATTRIBUTES.pack(
        *(_SOFTWARE, size, _CPU_CLOCK, sampling.period_ns, sampling.what, _TIME_ENABLED),
        _EXCLUDE_KERNEL | _EXCLUDE_HV,
    )
    attributes += _STACK_ATTRIBUTES.pack(*[0] * 4, sampling.registers, sampling.stack_bytes, 0)
    held = ctypes.create_string_buffer(attributes[:size], size)
    fd = call("perf_event_open", held, tid, -1, -1, ctypes.c_ulong(_CLOSE_ON_EXEC))
    try:
        yield fd
    finally:
        os.close(fd)


def recorded(tid: int, sampling: Sampling, for_s: float, pages: int) -> list[bytes]:
    """Return the samples of *tid* in the next *for_s*, which have room in so many *pages*.

    Or in the time after it, up to five times as long, where the thread has no CPU for so long.
    Raises OSError likewise.
    """
    with (
        thread_event(tid, sampling) as fd,
        mmap.mmap(fd, (1 + pages) * mmap.PAGESIZE) as ring,
    ):
        written = 0
        for _ in range(_PATIENCE):
            time.sleep(for_s)
            (written,) = _NUMBER.unpack_from(ring, _DATA_HEAD)
            if written:
                break
        content = ring[mmap.PAGESIZE : mmap.PAGESIZE + min(written, pages * mmap.PAGESIZE)]
    return list(records(content))


def records(content: bytes) -> Iterator[bytes]:
    """Yield what each sample among the records of *content* holds."""
    at = 0
    while at + _HEADER.size <= len(content):
        kind, _, size = _HEADER.unpack_from(content, at)
        if size < _HEADER.size or at + size > len(content):
            return
        if kind == _RECORD_SAMPLE:
            yield content[at + _HEADER.size : at + size]
        at += size
