"""Threads that the kernel knows by name: `top -H` tells which part of the agent uses the CPU."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

__all__ = ["named_thread"]

_TASKS = Path("/proc/self/task")
_LONGEST = 15
"""Bytes that the kernel keeps of a name."""


def named_thread(name: str, run: Callable[..., object], *arguments: object) -> threading.Thread:
    """Return a daemon thread, not started yet, that calls *run* with *arguments*.

    Once it is started the kernel shows the first 15 bytes of *name*, as Python does by itself from
    3.14 on.
    """
    return _NamedThread(target=run, args=arguments, name=name, daemon=True)


class _NamedThread(threading.Thread):
    """One that is named from outside: a frame of its own would make all roles the same."""

    def start(self) -> None:
        """Start it; raises RuntimeError where no thread can be started."""
        super().start()
        # Nothing depends on it: the thread may have ended, and /proc may be hidden.
        with contextlib.suppress(OSError):
            (_TASKS / str(self.native_id) / "comm").write_bytes(self.name.encode()[:_LONGEST])
