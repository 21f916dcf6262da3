"""How many files the agent may have open: each traced process takes several."""

import contextlib
import fcntl
import os
import resource

__all__ = ["RESERVED", "allow_many", "most_descriptors", "moved_up"]

RESERVED = 64
"""Descriptors that are left for whatever comes: without them nothing can be looked after."""

_UPPER = 4096
"""Where descriptors begin that can wait, see `moved_up`."""


def allow_many() -> None:
    """Raise this process' limit of open files as far as it may be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_descriptors() -> int:
    """Return how many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def moved_up(descriptor: int) -> int:
    """Return *descriptor* under a high number, or as it is where there are none.

    The kernel closes what a killed agent has open in the order of the numbers, and takes its time
    for each probe. Those that cost their process the most have to go first.
    """
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _UPPER)
    except OSError:
        return descriptor
    os.close(descriptor)
    return moved
