"""What Pythons before 3.8 lack and workloads need.

An interpreter with a GIL of its own cannot import ctypes, and has no need of it.
"""

import sys
import threading
import time

__all__ = ["monotonic_ns", "native_id", "perf_counter_ns"]

if sys.version_info < (3, 8):
    import ctypes

_SYS_GETTID = 186  # x86-64


def _native_id() -> int:
    return int(ctypes.CDLL(None).syscall(_SYS_GETTID))


def _clock_ns(clock: int) -> int:
    """Return a clock of the kernel to the nanosecond, without the detour through a float."""
    moment = (ctypes.c_long * 2)()
    ctypes.CDLL(None).clock_gettime(clock, ctypes.byref(moment))
    return moment[0] * 1_000_000_000 + moment[1]


def _monotonic_ns() -> int:
    return _clock_ns(time.CLOCK_MONOTONIC)


native_id = getattr(threading, "get_native_id", _native_id)
"""The kernel's id of the calling thread."""
monotonic_ns = getattr(time, "monotonic_ns", _monotonic_ns)
perf_counter_ns = getattr(time, "perf_counter_ns", _monotonic_ns)
