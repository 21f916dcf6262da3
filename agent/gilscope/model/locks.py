"""What is known of the locks that threads of a live process wait for, as plain values."""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import TracingCost
from gilscope.model.stack import UNKNOWN_STACK, Frame, Stack
from gilscope.values import dataclass

__all__ = [
    "LockKind",
    "LockMoment",
    "LockObservation",
    "LockProcess",
    "LockRecording",
    "LockSpan",
    "LockThread",
    "LockTimeline",
    "LockTotals",
    "LockWait",
    "StopCause",
    "StopSpan",
    "WorldStops",
]


class LockKind(Enum):
    """What a thread waits for."""

    OBJECT = "object"
    """The lock of an object, which free-threaded builds have in each."""
    LOCK = "lock"
    """A `threading.Lock`."""
    RLOCK = "rlock"
    """A `threading.RLock`."""
    INTERPRETER = "interpreter"
    """A mutex of the interpreter's own."""
    C_API = "c_api"
    """A lock of the C API (``PyThread_type_lock``): buffered files, zlib, C code, and in CPython
    3.13 an RLock too."""
    OTHER = "other"
    """Another mutex, of which it is not known what it guards."""
    WORLD_STOP = "world_stop"
    """The end of a stop of the world."""
    WORLD_STOP_REQUEST = "world_stop_request"
    """The other threads, which it has asked to stop."""
    IDLE = "idle"
    """Something to do: a condition, an event, a queue, the end of a thread. No contention."""

    @property
    def is_contention(self) -> bool:
        """Whether a thread waits for it because others are in its way."""
        return self is not LockKind.IDLE


@dataclass(frozen=True, slots=True)
class LockProcess:
    """Who a traced process is."""

    pid: int
    name: str
    python: str
    """``3.14.2t``; the last letter is that of a free-threaded build."""
    path: str
    """Of the file that the probes are in, as the process sees it."""
    build_id: str
    checks: tuple[str, ...] = ()
    """What was found in its code, in words."""
    container_id: str | None = None
    pod_uid: str | None = None


@dataclass(frozen=True, slots=True)
class LockWait:
    """What one thread has waited for at one place."""

    kind: LockKind
    type: str | None
    """Of the object, as its type is called, or which lock of the interpreter it is; else None."""
    stack: Stack
    """Where it waited, innermost first, eight frames at the most."""
    released: Stack
    """Where the thread stood that ended the wait by waking this one; of a stop of the world it is
    the one that had asked for it, and of such a request the last one to stop."""
    held: Stack
    """Where the thread stood that had the lock when the wait began, where the lock says whose it
    is: that of an object in a critical section, or an RLock."""
    wait_ns: int
    """From wanting to having, with the part of a wait in flight."""
    slept_ns: int
    """Of these, in the kernel; what is left it was spinning, and on its way."""
    waits: int
    sleeps: int
    longest_ns: int


@dataclass(frozen=True, slots=True)
class LockThread:
    """What one thread has waited for so far."""

    tid: int
    """As the agent sees it."""
    name: str
    """As the kernel knew the thread when it waited first."""
    waits: tuple[LockWait, ...]

    @property
    def contended_ns(self) -> int:
        """All that it waited but for what it was idle."""
        return sum(each.wait_ns for each in self.waits if each.kind.is_contention)

    @property
    def idle_ns(self) -> int:
        """What it waited for something to do."""
        return sum(each.wait_ns for each in self.waits if not each.kind.is_contention)


class StopCause(Enum):
    """What the world is stopped for."""

    COLLECTION = "gc"
    """A collection of garbage."""
    OTHER = "other"
    """What else needs all threads to stand still: a fork, a change of code or of a type."""


@dataclass(frozen=True, slots=True)
class WorldStops:
    """Stops of the world that a thread has asked for at one place, for one cause."""

    cause: StopCause
    stack: Stack
    """Where it asked for them, innermost first, eight frames at the most."""
    stops: int
    """Where it is not known where the world is stopped, those that made any thread wait, the asking
    one included."""
    stopping_ns: int
    """From asking for them until all other threads had stopped."""
    standing_ns: int
    """From then on, until the last thread had been woken."""
    longest_ns: int
    """The longest one, both together."""

    @property
    def ns(self) -> int:
        """How long they took in all."""
        return self.stopping_ns + self.standing_ns

    @property
    def stopping_share(self) -> float:
        """The part of that in which not all threads had stopped yet, 0 to 1."""
        return self.stopping_ns / max(1, self.ns)


@dataclass(frozen=True, slots=True)
class LockTotals:
    """Everything that has been counted of one process."""

    at_ns: int
    """CLOCK_MONOTONIC."""
    threads: tuple[LockThread, ...] = ()
    """Those that have waited, those that lost the most first."""
    stops: tuple[WorldStops, ...] = ()
    """Of the world, by place and cause, those that took longest first."""
    lost_events: Mapping[str, int] = field(default_factory=dict)
    traps: int = 0

    @property
    def contended_ns(self) -> int:
        """What all threads have lost."""
        return sum(thread.contended_ns for thread in self.threads)

    @property
    def idle_ns(self) -> int:
        """What all threads were idle, as far as it was in waits that are seen."""
        return sum(thread.idle_ns for thread in self.threads)

    def frames(self) -> frozenset[Frame]:
        """Return every frame in which a thread waited, or stopped the world."""
        waits = [wait for thread in self.threads for wait in thread.waits]
        stacks = [stack for wait in waits for stack in (wait.stack, wait.released, wait.held)]
        stacks += [stops.stack for stops in self.stops]
        return frozenset(frame for stack in stacks for frame in stack.frames)


@dataclass(frozen=True, slots=True)
class LockSpan:
    """One wait, for the timeline; or what is left of one behind what has interrupted it."""

    tid: int
    kind: LockKind
    type: str | None
    """As in `LockWait`, like the stacks."""
    began_ns: int
    ended_ns: int
    """Both CLOCK_MONOTONIC. It is as long as what counts: what a thread waits for in between, such
    as the end of a stop of the world, is a wait of its own, and makes the rest begin too late."""
    stack: Stack = UNKNOWN_STACK
    released: Stack = UNKNOWN_STACK
    held: Stack = UNKNOWN_STACK


@dataclass(frozen=True, slots=True)
class StopSpan:
    """A part of one stop of the world, for the timeline."""

    tid: int
    """Of the thread that asked for it."""
    cause: StopCause
    stands: bool
    """Whether all threads had stopped, or not yet."""
    began_ns: int
    ended_ns: int
    stack: Stack = UNKNOWN_STACK
    """Where it asked for it."""


@dataclass(frozen=True, slots=True)
class LockTimeline:
    """Waits and stops of the world one by one, each in the order of their ends."""

    waits: tuple[LockSpan, ...]
    stops: tuple[StopSpan, ...]
    dropped: int
    """How many more there were, which nobody could take over in time."""


@dataclass(frozen=True, slots=True)
class LockMoment:
    """The part of a recording in which its threads waited most for locks and for each other."""

    began_ns: int
    ended_ns: int
    """Both CLOCK_MONOTONIC."""
    waits: tuple[LockSpan, ...]
    """Those that reach into it, idle ones left out, in the order of their ends."""
    stops: tuple[StopSpan, ...]
    """Likewise."""
    unseen: tuple[tuple[int, int], ...] = ()
    """When waits were not sent one by one, because there were too many: from, to."""
    cut_seconds: int = 0
    """In how many seconds of the recording that was so: it is chosen among the rest."""
    dropped: int = 0
    """How many more waits there were that nobody could take over in time, or had room for."""


@dataclass(frozen=True, slots=True)
class LockObservation:
    """One process as a report shows it."""

    process: LockProcess
    since_ns: int
    """CLOCK_MONOTONIC when the probes were in place."""
    totals: LockTotals | None
    """None where nothing was seen at all; then `invalid` says why."""
    invalid: str = ""
    """Why nothing is counted any more; empty: it is. What was counted before holds."""
    ended: bool = False
    """The process has exited or was replaced by another program."""
    cost: TracingCost | None = None
    observed_ns: int = 0
    """How long what was counted was seen: in windows, or all the time."""
    is_whole: bool = True
    """Whether it was observed all the time."""


@dataclass(frozen=True, slots=True)
class LockRecording:
    """One process, observed for a while."""

    observation: LockObservation
    duration_ns: int
    application: Application = EVERYBODYS
    sources: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Lines of source code by file and line, as far as they could be read."""
    timeline: LockTimeline | None = None
    """None: the probes were not asked for it."""
    ended_ns: int = 0
    """When the observation ended, since the epoch; 0: not known."""
    worst: LockMoment | None = None
    """None: the probes were not asked for it, or nobody waited."""
