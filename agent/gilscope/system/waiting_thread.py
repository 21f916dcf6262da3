"""Tells whether a thread of the agent waits in the kernel for memory of another process.

A thread that is merely not given a CPU, or waits for the agent's own GIL, is not one of these: only
that keeps a busy machine from looking like a target that does not answer.
"""

import time
from collections.abc import Hashable
from pathlib import Path
from typing import Final

from gilscope.system.syscall import number_of

__all__ = ["Waiting", "waits_for_memory"]

_READS: Final = [number_of("process_vm_readv"), number_of("pread64")]
_LONGEST_STEP_S: Final = 0.25
"""That counts between two times of asking: an agent that was stopped has waited for nobody."""


def waits_for_memory(native_id: int) -> bool:
    """Return whether thread *native_id* of this process sleeps in a read of memory.

    False where that cannot be told.
    """
    task = Path("/proc/self/task") / str(native_id)
    try:
        state = (task / "stat").read_text().rpartition(") ")[2][:1]
        call = (task / "syscall").read_text().split(" ", 1)[0]
    except OSError:
        return False
    return state in {"S", "D"} and call.isdecimal() and int(call) in _READS


class Waiting:
    """How long one thing has been waited for, in time in which the agent ran."""

    def __init__(self) -> None:
        self._for: Hashable = None
        self._asked_s = 0.0
        self._waited_s = 0.0

    def note(self, awaited: Hashable, *, waits: bool) -> float:
        """Take note whether *awaited* is waited for now; return for how long it has been so far."""
        now_s = time.monotonic()
        if awaited != self._for:
            self._for, self._waited_s = awaited, 0.0
        elif waits:
            self._waited_s += min(_LONGEST_STEP_S, now_s - self._asked_s)
        self._asked_s = now_s
        return self._waited_s
