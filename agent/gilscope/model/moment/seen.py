"""What is seen of threads and locks at one moment, before it is put together."""

from gilscope.model.gil import Gil
from gilscope.model.stack import Stack
from gilscope.values import dataclass

__all__ = ["LockNow", "NativeLock", "ServedRequest", "SystemCall", "ThreadStack"]


@dataclass(frozen=True, slots=True)
class SystemCall:
    """A call of the kernel that a thread sleeps in."""

    name: str
    """As its man page is called; ``call 999`` where the number is not known."""
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LockNow:
    """A GIL as its own fields show it."""

    gil: Gil
    is_held: bool
    holder_tid: int | None
    """Who holds it, as the agent sees tids; None: nobody, or a thread that cannot be told."""
    first: int
    """Its condition variables and mutexes lie from here on; who sleeps there waits for it."""
    last: int
    """The first address behind them."""


@dataclass(frozen=True, slots=True)
class ThreadStack:
    """Where a thread stands in one interpreter."""

    tid: int
    interpreter_id: int
    stack: Stack
    descriptor: int = 0
    """Address of what `pthread_self()` returns in it; 0: not known."""


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """What a thread works for, by the ids that its program publishes, in hexadecimal."""

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class NativeLock:
    """A lock of C code that a thread sleeps on."""

    address: int
    owner_tid: int | None = None
    """Whom glibc's mutex names; None for a lock of another kind."""
