"""Gets a thread onto a CPU as soon as it wakes up, on a machine whose CPUs are all busy too."""

import ctypes
import os
import struct

from gilscope.system.syscall import attempt

__all__ = ["wake_promptly"]

# struct sched_attr of <linux/sched/types.h>, its first version: size, policy, flags, nice,
# priority, runtime, deadline, period.
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
_RUNTIME = 5
_SHORTEST_SLICE_NS = 100_000


def wake_promptly() -> bool:
    """Let the calling thread run at once when it wakes up; return whether that could be had.

    For a thread that runs briefly and seldom. It gets real-time priority, which needs CAP_SYS_NICE,
    or else the shortest time slice there is, which nobody is refused: since Linux 6.12 a thread
    with a shorter slice goes before one with a longer one.
    """
    try:
        # What the thread starts in its turn is ordinary again.
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(os.sched_get_priority_min(os.SCHED_FIFO)))
    except OSError:
        return _shorten_slice()
    return True


def _shorten_slice() -> bool:
    wanted = _scheduling()
    if wanted is None:
        return False
    wanted[_RUNTIME] = _SHORTEST_SLICE_NS
    attributes = ctypes.create_string_buffer(_ATTRIBUTES.pack(*wanted), _ATTRIBUTES.size)
    attempt("sched_setattr", 0, attributes, 0)
    # An older kernel takes it without a word and leaves it at 0.
    got = _scheduling()
    return got is not None and got[_RUNTIME] == _SHORTEST_SLICE_NS


def _scheduling() -> list[int] | None:
    attributes = ctypes.create_string_buffer(_ATTRIBUTES.size)
    if attempt("sched_getattr", 0, attributes, _ATTRIBUTES.size, 0):
        return None
    return list(_ATTRIBUTES.unpack(attributes.raw))
