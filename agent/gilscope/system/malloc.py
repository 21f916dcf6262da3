"""Keeps the memory together that the threads of the agent use one after the other."""

import ctypes

__all__ = ["share_one_arena"]

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
