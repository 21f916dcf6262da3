"""Numbers of system calls: arch/x86/entry/syscalls/syscall_64.tbl."""

from types import MappingProxyType
from typing import Final

__all__ = ["SYSTEM_CALLS"]

SYSTEM_CALLS: Final = MappingProxyType(
    {
        "pread64": 17,
        "setgroups": 116,
        "fstatfs": 138,
        "clock_gettime": 228,
        "perf_event_open": 298,
        "process_vm_readv": 310,
        "sched_setattr": 314,
        "sched_getattr": 315,
        "bpf": 321,
        "statx": 332,
        "openat2": 437,
    }
)
