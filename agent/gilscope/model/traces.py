"""What the requests of a process have waited, by the traces that it publishes, as plain values."""

from gilscope.model.kinds import Cause
from gilscope.model.stack import Stack
from gilscope.values import dataclass

__all__ = ["NO_HOLDS", "RouteWait", "TraceHold", "TraceHolds", "TraceWait", "Traces"]


@dataclass(frozen=True, slots=True)
class TraceWait:
    """What the threads of a process have waited in one trace: finished waits."""

    trace_id: str
    """In hexadecimal, as all of these."""
    wait_ns: int
    waits: int
    longest_ns: int
    """The longest of them; what follows is about that one."""
    ended_unix_ns: int
    span_id: str
    holder: Stack
    """Behind which it began."""
    cause: Cause
    cond: int
    """Address of the lock's condition variable, by which `Gil` is known."""


@dataclass(frozen=True, slots=True)
class RouteWait:
    """What the requests of one route have waited: finished waits."""

    route: str | None
    """None: of those whose route is not published."""
    requests: int
    """That have waited, by their traces."""
    wait_ns: int
    waits: int
    longest_ns: int
    """The longest wait."""
    holder: Stack
    """Behind which the longest waits of its requests began, by their time."""

    @property
    def mean_ns(self) -> int:
        """What a request has waited, on average."""
        return self.wait_ns // max(1, self.requests)


@dataclass(frozen=True, slots=True)
class TraceHold:
    """How a thread kept the GIL while it served one trace: by long holds, or by slow drops."""

    trace_id: str
    route: str | None
    """None: not published."""
    ns: int
    times: int
    longest_ns: int
    """The longest of them; what follows is about that one."""
    ended_unix_ns: int
    span_id: str
    cond: int


@dataclass(frozen=True, slots=True)
class TraceHolds:
    """All of one of the two kinds, since the attachment."""

    ns: int
    times: int
    worst: tuple[TraceHold, ...] = ()
    """Those that kept it most, the worst first."""
    recent: tuple[TraceHold, ...] = ()
    """For each power of two that one may last, the last trace whose longest did."""


NO_HOLDS = TraceHolds(0, 0)


@dataclass(frozen=True, slots=True)
class Traces:
    """All traces in which a thread has waited, or kept the GIL, since the attachment."""

    number: int
    """That have waited. A trace that has not waited for long may be counted again when it does."""
    wait_ns: int
    waits: int
    worst: tuple[TraceWait, ...] = ()
    """Those that have waited most, the worst first."""
    routes: tuple[RouteWait, ...] = ()
    """All of them, those that have waited most first; empty where no route is published."""
    recent: tuple[TraceWait, ...] = ()
    """For each power of two that a wait may last, the last trace whose longest did."""
    slow_drops: TraceHolds = NO_HOLDS
    """Requests that were slow to release it when asked."""
    long_holds: TraceHolds = NO_HOLDS
    """Those that held it for as long, asked or not; where holds are seen."""
