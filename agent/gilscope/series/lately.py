"""What one process has lost in the last minute or so, as the landing page tells it."""

from gilscope.model.gil import Tally
from gilscope.naming.hold_states import TellingState
from gilscope.values import dataclass

__all__ = ["Held", "Lately", "RecentHolder", "RecentPair", "SlowHolder"]


@dataclass(frozen=True, slots=True)
class RecentHolder:
    """What threads have lately lost while the holder was at one place."""

    place: str
    """In the application, if the holder's stack has a frame of it."""
    inner: str
    """Where the holder itself stood most, below that place; empty: at the place itself."""
    lost_ns: int
    states: tuple[TellingState, ...] = ()
    """Why it kept the GIL meanwhile."""


@dataclass(frozen=True, slots=True)
class Held:
    """Where the GIL was held, whether anybody waited or not, since the process is traced."""

    place: str
    """As in `RecentHolder`."""
    inner: str
    share: float
    """Of the time."""
    error: float
    """By how much that may be off, in 19 of 20 cases."""
    states: tuple[TellingState, ...] = ()
    """What it did meanwhile."""


@dataclass(frozen=True, slots=True)
class RecentPair:
    """What one place has lately been kept waiting by another."""

    waiter: str
    holder: str
    kind: str
    lost_ns: int


@dataclass(frozen=True, slots=True)
class SlowHolder:
    """A place where the GIL was kept although it was asked for."""

    holder: str
    drop_latency: Tally
    longest_ns: int
    in_flight_ns: int = 0
    """How long the request has lasted that is not answered yet; 0: there is none."""


@dataclass(frozen=True, slots=True)
class Lately:
    """What one process has lost in a period: about the last minute, if it can be."""

    period_ns: int
    is_all: bool
    """Whether the period is all the time for which the process is traced."""
    lost_ns: int
    holders: tuple[RecentHolder, ...]
    """The costliest first; only those at which anything was lost."""
    pairs: tuple[RecentPair, ...]
    """Likewise."""
    slow_holders: tuple[SlowHolder, ...]
    """The costliest first, of all the time for which the process is traced."""
    held: tuple[Held, ...] = ()
    """The longest first."""
