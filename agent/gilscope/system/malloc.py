"""Keeps the memory of the threads together, and gives back what none of them uses."""

import ctypes

__all__ = ["give_back", "share_one_arena"]

# <malloc.h> of glibc.
_M_ARENA_MAX = -8

_libc = ctypes.CDLL(None)


def share_one_arena() -> bool:
    """Let all threads of this process that are still to come allocate from one arena.

    Return whether that could be had. glibc gives threads arenas of their own, which keep what was
    used once: with a thread for each request that came to 10 MB.
    """
    try:
        return bool(_libc.mallopt(_M_ARENA_MAX, 1))
    except AttributeError:
        return False  # another C library


def give_back() -> bool:
    """Give memory that nobody uses back to the kernel; return whether there was any.

    glibc does so by itself only at the end of its heap, and each scrape of a thousand processes
    takes megabytes for a moment.
    """
    try:
        return bool(_libc.malloc_trim(0))
    except AttributeError:
        return False  # another C library
