"""Two threads that hold the lock of a process, for tests of windows."""

from gilscope.model.gil import Tally, ThreadTotals
from support.gil.lock_model import COND, Process

__all__ = ["A", "B", "held_by", "hold"]

A, B = 201, 202


def held_by(thread: ThreadTotals) -> Tally:
    """Return what *thread* has held."""
    assert thread.held is not None
    return thread.held


def hold(process: Process, ns: int, tid: int = A, cond: int = COND) -> None:
    """Let a thread take the lock, and let it go *ns* later."""
    process.take(tid, cond)
    process.passes(ns)
    process.release(cond)
