"""The values that the layers exchange: plain, frozen, and in integer nanoseconds."""

from collections.abc import Iterator, Mapping
from dataclasses import field

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.histogram import Histogram
from gilscope.model.kinds import Cause, Kind
from gilscope.model.moment.hold_state import UNKNOWN_HOLD, HoldState
from gilscope.model.stack import Frame, Stack
from gilscope.model.timeline import Moment, Timeline
from gilscope.model.traces import Traces
from gilscope.values import dataclass

__all__ = [
    "ENDED_INTERPRETER",
    "BriefRelease",
    "Edge",
    "Gil",
    "GilObservation",
    "GilTotals",
    "HeldBy",
    "HeldUp",
    "HoldTotals",
    "HolderSamples",
    "Process",
    "ProcessTotals",
    "Recording",
    "Refusal",
    "SlowDrop",
    "Tally",
    "ThreadTotals",
    "TracingCost",
]


ENDED_INTERPRETER = -1
"""In place of the id of an interpreter that ended before it could be asked for it."""


@dataclass(frozen=True, slots=True)
class Gil:
    """One lock of a running process."""

    cond: int
    """Run-time address of its ``cond`` member: the lock's identity within the process."""
    interpreter_id: int
    """The id of the interpreter that owns it; 0 is the main one."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Time and number of something that happened repeatedly."""

    ns: int = 0
    count: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.ns + other.ns, self.count + other.count)


@dataclass(frozen=True, slots=True)
class Edge:
    """The time that threads at one place were kept waiting by one at another place."""

    kind: Kind
    waiter: Stack
    holder: Stack
    lost: Tally
    """Waiting time, that of waits in flight included, and how often a wait came to be this
    holder's: a wait that is kept by three holders in turn is noted at three edges."""


@dataclass(frozen=True, slots=True)
class BriefRelease:
    """Calls in one stack that released the GIL for less than a tenth of a millisecond.

    After each of them the thread had to wait for it, and longer than that.
    """

    waiter: Stack
    away_ns: int
    """For how long the thread did not need it, in all of them."""
    waited: Tally

    def __add__(self, other: "BriefRelease") -> "BriefRelease":
        return BriefRelease(self.waiter, self.away_ns + other.away_ns, self.waited + other.waited)


@dataclass(frozen=True, slots=True)
class SlowDrop:
    """A place where a thread did not release the GIL although it had been asked to."""

    holder: Stack
    """Where it stood soon after it had been asked."""
    drop_latency: Tally
    """Request to release, of the requests that took longer than the threshold; those in flight
    count up to now."""
    longest_ns: int
    in_flight_ns: int = 0
    """How long the one that it has not answered yet has lasted; 0: there is none."""


@dataclass(frozen=True, slots=True)
class ThreadTotals:
    """What one thread has lost so far."""

    tid: int
    """As the agent sees it."""
    role: str | None
    """None: alive, and too young to be asked."""
    lost: Mapping[Kind, Tally]
    """Times include a wait in flight, numbers do not."""
    drop_requests: int
    waiting_ns: int = 0
    """How long the wait in flight has lasted; 0: none is."""
    held: Tally | None = None
    """Time inside windows that it held a GIL, a hold in flight included, and the number of holds
    that began in one and have ended; None: the mode does not see holds."""
    is_alive: bool = True
    failed_wakeups: Tally = Tally()
    """How often it was woken while it waited and found the GIL held again, and the time waited
    from the first of these in a wait to its end, a wait in flight included."""
    acquires_about: int | None = None
    """How often it acquired the GIL, waiting or not, estimated from windows; None: not known, or
    `held` has it exactly."""

    @property
    def wait_ns(self) -> int:
        """Time lost waiting, of all kinds."""
        return sum(tally.ns for tally in self.lost.values())

    @property
    def waits(self) -> int:
        """Number of finished waits, of all kinds."""
        return sum(tally.count for tally in self.lost.values())

    @property
    def convoy_waits(self) -> int:
        """Number of finished convoy waits."""
        return self.lost[Kind.CONVOY].count

    @property
    def forced_switches(self) -> int:
        """How often the thread was preempted."""
        return self.lost[Kind.PREEMPTION].count


@dataclass(frozen=True, slots=True)
class GilTotals:
    """What has been seen of one lock so far. Histograms hold finished waits only."""

    gil: Gil
    interval_ns: int
    """The switch interval, or what stands for it where there is none; 0 where nobody has waited
    yet."""
    waits: Mapping[Cause, Histogram]
    drop_latency: Histogram
    convoy_waits: int
    forced_switches: int
    drop_requests: int
    holds: "HoldTotals | None" = None
    """None: the mode does not see holds."""
    held_ns: int | None = None
    """Time that it was held since the attachment, estimated where no window was open; None: not
    known."""


@dataclass(frozen=True, slots=True)
class HoldTotals:
    """What has been seen of the holds of one lock so far."""

    finished: Histogram
    """Those that began in a window, whole."""
    switch_latency: Histogram
    """Release to acquisition by a thread that was already waiting."""
    held_ns: int
    """Inside windows, a hold in flight included."""
    holding_ns: int
    """How long the hold in flight has lasted, as far as it has been seen; 0: none is known."""


@dataclass(frozen=True, slots=True)
class TracingCost:
    """What tracing costs one process, by its own estimate."""

    overhead_ns: int
    """Of all traps since the attachment."""
    recent_ratio: float
    """Of the last minute: overhead by the CPU time that the process used itself."""
    traps: int
    stack_share: float | None = None
    """The share of waits whose stacks are read now; None: of none."""
    used_ns: int | None = None
    """CPU time that the process has used itself since the attachment; None: not known."""
    waits_unseen_ns: int = 0
    """Time in which waits that began were not counted: they are estimated from all others."""
    wait_error: float | None = None
    """By how much of itself the time that was waited is off, by the last windows of waits, in 19 of
    20 cases; None: it is counted, or these were too few."""


@dataclass(frozen=True, slots=True)
class HeldBy:
    """A place where the GIL was held, in one state, whether anybody waited or not."""

    holder: Stack
    held_ns: int
    """By samples: each stands for the time since the one before."""
    state: HoldState = UNKNOWN_HOLD
    waited_ns: int = 0
    """The time that threads waited meanwhile, by samples too."""


@dataclass(frozen=True, slots=True)
class HeldUp:
    """The time that threads were kept waiting by one place in one state."""

    holder: Stack
    kind: Kind
    state: HoldState
    ns: int
    """Of one holder and kind these add up to what was lost; by samples they are shared out among
    the states."""


@dataclass(frozen=True, slots=True)
class HolderSamples:
    """What samples of the holders of a process have come to."""

    samples: int
    sampled_ns: int
    """The time that they stand for."""
    holders: tuple[HeldBy, ...]
    """The one that held it longest first; where there are several GILs, of all of them. A place
    is there once for each state."""


@dataclass(frozen=True, slots=True)
class ProcessTotals:
    """Everything that has been counted of one process up to one instant."""

    at_ns: int
    """CLOCK_MONOTONIC."""
    threads: tuple[ThreadTotals, ...]
    gils: tuple[GilTotals, ...]
    lost_events: Mapping[str, int]
    """By reason; only reasons that have occurred."""
    edges: tuple[Edge, ...] = ()
    """Who kept whom waiting, the costliest first."""
    slow_drops: tuple[SlowDrop, ...] = ()
    """Who did not drop it when asked, the costliest first."""
    check_interval: int | None = None
    """Bytecodes after which a thread gives the GIL away by itself; None: it is asked to."""
    has_stacks: bool = True
    """Whether stacks are read; if not, there are neither edges nor slow_drops."""
    observed_ns: int | None = None
    """Time that windows of full mode have covered; None: the mode has none."""
    cost: TracingCost | None = None
    holder_samples: HolderSamples | None = None
    """None: stacks are not read."""
    held_up: tuple[HeldUp, ...] = ()
    """The edges by holder and kind, and by why the holder kept the GIL."""
    traces: Traces | None = None
    """What its requests have waited; None: it does not publish which its threads serve."""
    throttled_ns: int | None = None
    """For how long the CPU limit of a cgroup has kept the process from running since the
    attachment; None: not known."""

    @property
    def wait_ns(self) -> int:
        """Time that its threads have lost waiting, of all kinds."""
        return sum(thread.wait_ns for thread in self.threads)

    def frames(self) -> Iterator[Frame]:
        """Yield the frames of all stacks, one as often as it occurs."""
        for edge in self.edges:
            yield from edge.waiter.frames
            yield from edge.holder.frames
        for slow_drop in self.slow_drops:
            yield from slow_drop.holder.frames
        if self.holder_samples is not None:
            for held in self.holder_samples.holders:
                yield from held.holder.frames


@dataclass(frozen=True, slots=True)
class Process:
    """Who a traced process is."""

    pid: int
    name: str
    """Short name made from the command line: script, module or ``-m`` name."""
    python: str
    """``3.11.2``, or ``3.9`` where the file does not tell the micro version."""
    build_id: str
    method: str
    """``sites`` or ``libc``: how the GIL is observed."""
    runtime: str = "cpython"
    """Which Python it is: ``cpython`` or ``pypy``."""
    asks_holder: bool = True
    """Whether threads that wait ask for the GIL: if not, there are no drop requests and no switch
    interval."""
    wakes_in_vain: bool = False
    """Whether a thread that is woken may find the lock taken again, which is counted; then no
    switch is forced either."""
    knows_causes: bool = True
    """Whether it can be told what came before a wait; if not, convoys and yields are not seen."""
    shows_holds: bool = True
    """Whether full mode and its windows see its holds."""
    container_id: str | None = None
    pod_uid: str | None = None
    service: str | None = None
    """What it calls its service, for readers outside of it; None: it does not say."""
    gil_needed_by: str | None = None
    """Of a free-threaded build the first extension module that needs its GIL; None: none does, as
    far as is known."""
    is_gil_asked_for: bool = False
    """Whether a free-threaded build was asked to have it, so that it is on from the start."""


@dataclass(frozen=True, slots=True)
class GilObservation:
    """One process as a report or a scrape shows it."""

    process: Process
    since_ns: int
    """CLOCK_MONOTONIC when the probes were in place."""
    totals: ProcessTotals
    invalid: str = ""
    """Why the numbers cannot be trusted; empty: they can. Then there are no totals."""
    ended: bool = False
    """The process has exited or was replaced by another program."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One process, observed for a while."""

    observation: GilObservation
    mode: str
    """``contention`` or ``full``."""
    duration_ns: int
    application: Application = EVERYBODYS
    """Whose code is to be told apart from libraries'."""
    sources: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Source lines by file and line number, without indentation; those that could be read."""
    listings: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """More lines around the costliest ones, with their indentation; those that could be read."""
    timeline: Timeline | None = None
    """None: it was not asked for."""
    worst: Moment | None = None
    """None: it was not asked for, or nobody has waited."""
    ended_ns: int = 0
    """When it ended, since the epoch, by the host's clock."""
    host: str = ""
    """The name of the host, as it calls itself."""
    brief_releases: tuple[BriefRelease, ...] | None = None
    """The costliest first; None: releases are not seen."""
    snapshots: tuple[GilObservation, ...] = ()
    """Observations before the last one, in the order of time; none where they were not asked
    for."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A Python process that was chosen and cannot be traced."""

    pid: int
    name: str
    reason: str
    remedy: str
