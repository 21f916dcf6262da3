"""Tells whether a Python that a process has loaded is one that it runs."""

from enum import IntEnum

from gilscope.errors import GilscopeError
from gilscope.process.guarded_memory import GuardedMemory
from gilscope.process.procfs import Mapping
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython.detect import Interpreter
from gilscope.runtimes.cpython.runtime import read_gils, runtime_of
from gilscope.runtimes.cpython.threads import ThreadFinder

__all__ = ["Usage", "usage_of"]


class Usage(IntEnum):
    """How much speaks for it."""

    NONE = 0
    """It has never been initialised, or cannot be read."""
    INITIALISED = 1
    HAS_THREADS = 2
    """Threads of the process, which the kernel knows too."""


def usage_of(pid: int, interpreter: Interpreter, file: Mapping, load_bias: int) -> Usage:
    """Return whether process *pid* runs *interpreter*, loaded *load_bias* above its addresses.

    *file* is a mapping of the file that holds it.
    """
    try:
        with GuardedMemory(pid, [file]) as memory:
            runtime = runtime_of(memory, interpreter, load_bias)
            if not read_gils(runtime):
                return Usage.NONE
            try:
                has_threads = bool(ThreadFinder(pid, runtime).by_tid())
            except TornRead:
                has_threads = False
            return Usage.HAS_THREADS if has_threads else Usage.INITIALISED
    except (OSError, TornRead, GilscopeError):
        return Usage.NONE
