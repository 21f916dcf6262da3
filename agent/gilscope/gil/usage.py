"""Tells whether a Python that a process has loaded is one that it runs."""

from enum import IntEnum

from gilscope.errors import GilscopeError
from gilscope.gil.interpreter import Interpreter
from gilscope.gil.memory import TornRead
from gilscope.gil.runtime import read_gils, runtime_of
from gilscope.gil.thread_finder import ThreadFinder
from gilscope.guarded_memory import GuardedMemory
from gilscope.procfs import Mapping

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
