"""What all threads of a process do at one moment, as plain values."""

from enum import Enum

from gilscope.model.gil import Edge, Gil
from gilscope.model.moment.seen import NativeLock, ServedRequest, SystemCall, ThreadStack
from gilscope.model.stack import Stack
from gilscope.values import dataclass

__all__ = ["Awaited", "Dump", "DumpedGil", "DumpedThread", "Step", "Trigger"]


class Awaited(Enum):
    """What a thread waits for; the values are those of the report for programs."""

    GIL = "gil"
    LOCK = "lock"


@dataclass(frozen=True, slots=True)
class DumpedGil:
    """One GIL, who holds it, and who waits for it."""

    gil: Gil
    is_held: bool
    holder_tid: int | None
    waiting_tids: tuple[int, ...]
    held_ns: int | None = None
    """For how long at the least; None where no tracer knows."""


@dataclass(frozen=True, slots=True)
class DumpedThread:
    """One thread."""

    tid: int
    name: str
    """Its own, which the kernel keeps."""
    role: str
    state: str
    """The kernel's letter for it: R runs or could, S sleeps, D sleeps uninterruptibly."""
    call: SystemCall | None = None
    """None: it runs, or what it sleeps in is no system call."""
    call_words: str = ""
    awaited: Awaited | None = None
    gil_cond: int | None = None
    """The GIL that it waits for."""
    lock: NativeLock | None = None
    cpu_ns: int | None = None
    run_delay_ns: int | None = None
    """How long it has been ready without a processor."""
    slices: int | None = None
    """How often it was given a processor: the same number later means that it has not run."""
    stacks: tuple[ThreadStack, ...] = ()
    waiting_ns: int | None = None
    """For how long it has been waiting for the GIL; None where no tracer knows."""
    request: ServedRequest | None = None
    """What it works for; None where its program does not publish that."""

    @property
    def stack(self) -> Stack | None:
        """The stack that tells most; None: it is no thread of Python."""
        known = (each.stack for each in self.stacks if each.stack.frames)
        return next(known, self.stacks[0].stack if self.stacks else None)


@dataclass(frozen=True, slots=True)
class Step:
    """One thread of a deadlock, and what it waits for, which the next one holds."""

    tid: int
    awaited: Awaited
    address: int
    """Of the lock."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a dump was taken without being asked for: a wait that passed a limit."""

    tid: int
    waited_ns: int
    limit_ns: int


@dataclass(frozen=True, slots=True)
class Dump:
    """What all threads of a process did at one moment."""

    pid: int
    process: str
    python: str
    at_ns: int
    """Since 1970."""
    gils: tuple[DumpedGil, ...]
    threads: tuple[DumpedThread, ...]
    deadlocks: tuple[tuple[Step, ...], ...] = ()
    """Each a circle: the last one waits for what the first holds."""
    left_out: int = 0
    """Threads of which there are too many to be told."""
    trigger: Trigger | None = None
    pairs: tuple[Edge, ...] | None = None
    """Who kept whom waiting lately; None: nobody has counted that."""
    pairs_ns: int = 0
    """For how long that was counted."""

    def thread(self, tid: int | None) -> DumpedThread | None:
        """Return the thread with that number, None where there is none."""
        return next((each for each in self.threads if each.tid == tid), None)
