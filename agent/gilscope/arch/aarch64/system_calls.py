"""Numbers of system calls: include/uapi/asm-generic/unistd.h."""

from types import MappingProxyType
from typing import Final

__all__ = ["SYSTEM_CALLS"]

SYSTEM_CALLS: Final = MappingProxyType(
    {
        "fstatfs": 44,
        "pread64": 67,
        "clock_gettime": 113,
        "setgroups": 159,
        "perf_event_open": 241,
        "process_vm_readv": 270,
        "sched_setattr": 274,
        "sched_getattr": 275,
        "bpf": 280,
        "statx": 291,
        "openat2": 437,
    }
)
