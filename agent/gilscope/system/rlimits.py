"""How many files the agent may have open: each traced process takes several."""

import contextlib
import resource

__all__ = ["RESERVED", "allow_many", "most_descriptors"]

RESERVED = 64
"""Descriptors that are left for whatever comes: without them nothing can be looked after."""


def allow_many() -> None:
    """Raise this process' limit of open files as far as it may be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_descriptors() -> int:
    """Return how many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
