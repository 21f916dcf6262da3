"""Whole stacks of threads that stand still, read from outside."""

from itertools import islice

from gilscope.process.remote_read import retried
from gilscope.runtimes.cpython.code.frames import places
from gilscope.runtimes.cpython.runtime import Runtime

__all__ = ["read_places"]


def read_places(runtime: Runtime, tstate: int, *, limit: int = 64) -> list[tuple[int, int]]:
    """Return code object and instruction of up to *limit* frames, innermost first.

    Empty for a thread that is not in Python code. Raises TornRead.
    """
    return retried(lambda: list(islice(places(runtime, tstate), limit)))
