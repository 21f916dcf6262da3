"""What a thread does while it holds the GIL, by which others can tell why it keeps it."""

from enum import Enum

from gilscope.values import dataclass

__all__ = ["UNKNOWN_HOLD", "HoldState", "State"]


class State(Enum):
    """The kinds, in the order in which they are told."""

    PYTHON = "python"
    """It runs Python code, or C code that it is not long in."""
    GC = "gc"
    """It collects garbage."""
    JIT = "jit"
    """Its runtime compiles the Python code that it runs."""
    NATIVE = "native"
    """It is in a call into C that has not come back between two samples."""
    SYSCALL = "syscall"
    """It sleeps in a system call, with the GIL held."""
    NO_CPU = "no_cpu"
    """It could run, and no CPU runs it."""
    PAGE_FAULT = "page_fault"
    """It waits for a page of memory."""
    UNKNOWN = "unknown"
    """It could not be told."""


@dataclass(frozen=True, slots=True)
class HoldState:
    """One of these, and what is known beside it."""

    state: State
    detail: str = ""
    """Of `GC` the generation, of `NATIVE` module and function, of `SYSCALL` its name and what it
    is about; empty: not known, or nothing to tell."""
    calls: tuple[str, ...] = ()
    """Of `NATIVE` the functions between its innermost and the Python code that led to it, innermost
    first, each with its file: ``libz.so.1 deflate``; empty: not asked for, or not known."""


UNKNOWN_HOLD = HoldState(State.UNKNOWN)
