"""Keeps the scheduler out of what a workload measures."""

import ctypes
import errno
import fcntl
import os

from gilclock import build_directory

__all__ = ["POLICIES", "schedule"]

_SCHED_SETSCHEDULER = 144  # its number on x86-64

POLICIES = ("auto", "rr", "other")

# Open, and so locked, as long as the process lives.
_locks: "list[int]" = []


def schedule(policy: str) -> str:
    """Put this process, and the threads it will start, under a scheduling policy; return it.

    `auto` is real-time priority (`rr`) where that is permitted, there are two CPUs, and no other
    workload has it: threads with the same real-time priority keep each other from running, which
    is harmless only as long as just one of them, the GIL's holder, computes.
    """
    if policy == "other":
        return "other"
    if policy == "auto" and not (len(os.sched_getaffinity(0)) > 1 and _is_alone()):
        return "other"
    try:
        _set_real_time()
    except PermissionError:
        if policy == "rr":
            raise
        return "other"
    return "rr"


def _set_real_time() -> None:
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError as error:
        # musl knows of no scheduling, the kernel does.
        if error.errno != errno.ENOSYS:
            raise
        _ask_the_kernel()


def _ask_the_kernel() -> None:
    libc, one = ctypes.CDLL(None, use_errno=True), ctypes.c_int(1)
    if libc.syscall(_SCHED_SETSCHEDULER, 0, os.SCHED_RR, ctypes.byref(one)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _is_alone() -> bool:
    fd = os.open(str(build_directory() / "realtime.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return False
    _locks.append(fd)
    return True
