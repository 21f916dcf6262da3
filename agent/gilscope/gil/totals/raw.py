"""What the kernel's tables hold of processes, locks and stacks, as it was read."""

from collections.abc import Mapping
from dataclasses import field

from gilscope.gil.abi import Loss
from gilscope.gil.totals.held_traces import HeldKey, RawHeldTrace
from gilscope.gil.totals.traces import RawTrace
from gilscope.model.histogram import Histogram
from gilscope.values import Record, dataclass

__all__ = [
    "Holding",
    "RawEdge",
    "RawLock",
    "RawProcess",
    "RawStack",
    "RawTotals",
    "Taken",
    "Unanswered",
    "Waiting",
]


@dataclass(frozen=True, slots=True)
class Holding:
    """A hold in flight, as of one instant."""

    tid: int | None
    """None: cannot be told."""
    since_ns: int
    """When it began, or when the window did that found it there."""
    part_ns: int
    """How much of it lies in windows so far."""


@dataclass(frozen=True, slots=True)
class RawLock:
    """What is known of the holds of one lock."""

    record: Record
    holding: Holding | None
    credits_ns: Mapping[int | None, int]
    """By thread: held time in windows that the probes could not see."""

    def finished(self) -> "RawLock":
        """Return the same with the hold in flight as one that has ended."""
        if self.holding is None:
            return self
        tid = self.holding.tid
        held_ns = self.credits_ns.get(tid, 0) + self.holding.part_ns
        return RawLock(self.record, None, {**self.credits_ns, tid: held_ns})


@dataclass(frozen=True, slots=True)
class RawEdge:
    """Time, number, and the longest of what happened between two stacks, or at one."""

    ns: int
    count: int
    longest_ns: int = 0

    def __add__(self, other: "RawEdge") -> "RawEdge":
        return RawEdge(
            self.ns + other.ns, self.count + other.count, max(self.longest_ns, other.longest_ns)
        )


@dataclass(frozen=True, slots=True)
class RawStack:
    """A stack as the probes have read it."""

    pid: int
    id: int
    state: int
    """``enum stack_state``."""
    places: tuple[tuple[int, int], ...]
    """Address of the code object and what the frame says of the instruction, innermost first."""
    identities: tuple[int, ...]
    """What `code_identity.is_code` knows each of these code objects by."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is known of a wait in flight. Stacks are by their ids in the probes."""

    waiter: int
    holder: int
    since_ns: int
    """Since when it is attributed to *holder*."""
    slices: tuple[tuple[int, RawEdge], ...]
    """What came before that and is in no edge yet, by holder."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A drop request in flight that the holder is slow to answer."""

    holder: int
    """The stack that it stood in soon after it had been asked, by its id in the probes."""
    asked_ns: int


@dataclass(slots=True)
class Taken:
    """What has left the tables and is to be kept elsewhere."""

    edges: dict[tuple[int, int, int], RawEdge] = field(default_factory=dict)
    """By number of the kind, waiter and holder."""
    slow_drops: dict[int, RawEdge] = field(default_factory=dict)
    """By holder."""
    traces: dict[str, RawTrace] = field(default_factory=dict)
    """By the id of the trace."""
    held_traces: dict[HeldKey, RawHeldTrace] = field(default_factory=dict)


@dataclass(slots=True)
class RawProcess:
    """The map records of one process."""

    threads: dict[int, Record] = field(default_factory=dict)
    """By tid."""
    gils: dict[int, Record] = field(default_factory=dict)
    """By address of ``cond``."""
    histograms: dict[tuple[int, int], Histogram] = field(default_factory=dict)
    """By address of ``cond`` and quantity."""
    locks: dict[int, RawLock] = field(default_factory=dict)
    """By address of ``cond``; empty where holds are not seen."""
    edges: dict[tuple[int, int, int], RawEdge] = field(default_factory=dict)
    """By number of the kind, waiter and holder; finished slices of waits, but those in `taken`."""
    slow_drops: dict[int, RawEdge] = field(default_factory=dict)
    """By holder: the drop requests that it was slow to answer, but those in `taken`."""
    traces: dict[str, RawTrace] = field(default_factory=dict)
    """By the id of the trace: finished waits in it, but those in `taken`."""
    held_traces: dict[HeldKey, RawHeldTrace] = field(default_factory=dict)
    """By kind and trace: what was kept from others in it, but that in `taken`."""
    unanswered: list[Unanswered] = field(default_factory=list)
    taken: Taken = field(default_factory=Taken)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    """By tid: waits in flight, as far as they are in no edge."""
    lost: dict[Loss, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawTotals:
    """The map records of all processes."""

    at_ns: int
    processes: dict[int, RawProcess]
    """By pid."""
