"""What happened between two snapshots of the traced processes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gilscope.model.gil import (
    Edge,
    GilObservation,
    HeldUp,
    HolderSamples,
    Process,
    ProcessTotals,
    Tally,
    ThreadTotals,
)
from gilscope.model.kinds import Kind
from gilscope.model.stack import Stack
from gilscope.model.traces import RouteWait, Traces
from gilscope.series.requests.since import routes_since
from gilscope.values import dataclass
from gilscope.verdict.estimates import are_shared_out

__all__ = ["PairRates", "ProcessRates", "RoleRates", "rates"]

_STARTING = "starting"
"""The role of a thread that is too young to be asked."""

_Pair = tuple[Kind, Stack, Stack]


@dataclass(frozen=True, slots=True)
class RoleRates:
    """The threads of one role, in one interval."""

    role: str
    threads: int
    """That are alive."""
    lost_ns: int
    """Time that they lost waiting in the interval, waits in flight included."""
    convoy_ns: int
    """Part of it: convoy waits."""
    waiting: int
    """Threads that wait at the end of the interval."""
    longest_wait_ns: int
    """The longest wait in flight; 0: none is."""
    held_ns: int | None
    """Time inside windows that they held a GIL; None: the mode does not see holds."""


@dataclass(frozen=True, slots=True)
class PairRates:
    """The waits of one kind at one place for one other place, in one interval."""

    kind: Kind
    waiter: Stack
    holder: Stack
    lost: Tally
    """In the interval."""
    total: Tally
    """Since the attachment."""


@dataclass(frozen=True, slots=True)
class ProcessRates:
    """One process in one interval; without figures where they cannot be trusted."""

    process: Process
    since_ns: int
    """CLOCK_MONOTONIC when the probes were in place: with the pid, the identity."""
    elapsed_ns: int
    """Length of the interval; 0: it ended before, or nothing has passed yet."""
    roles: tuple[RoleRates, ...] = ()
    """The costliest first."""
    pairs: tuple[PairRates, ...] = ()
    """The costliest of the interval first, then those of all the time."""
    held_ns: int | None = None
    """Time that its GILs were held, added up; None: not known."""
    observed_ns: int | None = None
    """Time that windows of full mode have covered; None: the mode has none."""
    longest_hold_ns: int = 0
    """The longest hold in flight; 0: none is known."""
    overhead: float | None = None
    """Of the last minute: cost of tracing by the CPU time that the process used itself."""
    lost_events: int = 0
    """Since the attachment."""
    is_estimate: bool = False
    """Whether the pairs are scaled up from those waits whose stacks are read."""
    holder_samples: HolderSamples | None = None
    """Since the attachment; None: holders are not sampled."""
    held_up: tuple[HeldUp, ...] = ()
    """What was lost, by why the holder kept the GIL; since the attachment."""
    routes: tuple[RouteWait, ...] = ()
    """What requests have waited in the interval, the costliest first."""
    seen: GilObservation | None = None
    """What it comes from; None: there are no figures."""
    invalid: str = ""
    """Why there are no figures; empty: there are."""
    ended: bool = False

    @property
    def lost_ns(self) -> int:
        """Time that all threads lost waiting in the interval."""
        return sum(role.lost_ns for role in self.roles)

    @property
    def convoy_ns(self) -> int:
        """Part of it: convoy waits."""
        return sum(role.convoy_ns for role in self.roles)

    @property
    def waiting(self) -> int:
        """Threads that wait at the end of the interval."""
        return sum(role.waiting for role in self.roles)

    @property
    def longest_wait_ns(self) -> int:
        """The longest wait in flight; 0: none is."""
        return max((role.longest_wait_ns for role in self.roles), default=0)


def rates(
    before: Iterable[GilObservation], now: Iterable[GilObservation]
) -> tuple[ProcessRates, ...]:
    """Return what each process of *now* has done since *before*, in the order of *now*.

    A process that was not there before, was attached anew, or had no figures is measured from its
    attachment on. A counter that has fallen or vanished counts as having stood still.
    """
    known = {_identity(seen): seen.totals for seen in before if not seen.invalid}
    return tuple(_process_rates(known.get(_identity(seen)), seen) for seen in now)


def _identity(observation: GilObservation) -> tuple[int, int]:
    return observation.process.pid, observation.since_ns


def _process_rates(before: ProcessTotals | None, seen: GilObservation) -> ProcessRates:
    if seen.invalid:
        return ProcessRates(seen.process, seen.since_ns, 0, invalid=seen.invalid, ended=seen.ended)
    now = seen.totals
    if before is None:
        before = ProcessTotals(seen.since_ns, (), (), {})
    return ProcessRates(
        process=seen.process,
        since_ns=seen.since_ns,
        elapsed_ns=max(0, now.at_ns - before.at_ns),
        roles=_roles(before.threads, now.threads),
        pairs=_pairs(before.edges, now.edges),
        held_ns=_held_ns(before, now),
        observed_ns=_gain(before.observed_ns, now.observed_ns),
        longest_hold_ns=max((gil.holds.holding_ns for gil in now.gils if gil.holds), default=0),
        overhead=None if now.cost is None else now.cost.recent_ratio,
        lost_events=sum(now.lost_events.values()),
        is_estimate=are_shared_out(now),
        holder_samples=now.holder_samples,
        held_up=now.held_up,
        routes=_routes(before.traces, now.traces),
        seen=seen,
        ended=seen.ended,
    )


def _routes(before: Traces | None, now: Traces | None) -> tuple[RouteWait, ...]:
    if now is None:
        return ()
    return routes_since(now.routes, () if before is None else before.routes)


def _roles(before: Sequence[ThreadTotals], now: Sequence[ThreadTotals]) -> tuple[RoleRates, ...]:
    earlier = _by_role(_renamed(before, now))
    found = (
        _role_rates(role, earlier.get(role, ()), threads)
        for role, threads in _by_role((thread.role, thread) for thread in now).items()
    )
    # A role of the past, without threads and without losses, is of no interest to anybody.
    shown = [role for role in found if role.threads or role.lost_ns]
    return tuple(sorted(shown, key=lambda role: (-role.lost_ns, role.role)))


def _renamed(
    before: Iterable[ThreadTotals], now: Iterable[ThreadTotals]
) -> Iterator[tuple[str | None, ThreadTotals]]:
    """Yield the threads of *before* with the roles that they are known by *now*.

    A thread that was too young for a role brings its time along when it gets one. That time is not
    lost once more.
    """
    still = {thread.tid: thread for thread in now if thread.is_alive}
    for thread in before:
        later = still.get(thread.tid)
        if later is not None and thread.is_alive and later.wait_ns >= thread.wait_ns:
            yield later.role, thread
        else:
            yield thread.role, thread


def _by_role(
    threads: Iterable[tuple[str | None, ThreadTotals]],
) -> Mapping[str, list[ThreadTotals]]:
    found: dict[str, list[ThreadTotals]] = {}
    for role, thread in threads:
        found.setdefault(role or _STARTING, []).append(thread)
    return found


def _role_rates(
    role: str, before: Sequence[ThreadTotals], now: Sequence[ThreadTotals]
) -> RoleRates:
    lost_ns = {kind: _lost_ns(now, kind) - _lost_ns(before, kind) for kind in Kind}
    return RoleRates(
        role=role,
        threads=sum(1 for thread in now if thread.is_alive),
        # Of the kinds together: a wait in flight becomes a convoy after a while.
        lost_ns=max(0, sum(lost_ns.values())),
        convoy_ns=max(0, min(lost_ns[Kind.CONVOY], sum(lost_ns.values()))),
        waiting=sum(1 for thread in now if thread.waiting_ns),
        longest_wait_ns=max((thread.waiting_ns for thread in now), default=0),
        held_ns=_gain(_held_in_windows_ns(before), _held_in_windows_ns(now)),
    )


def _lost_ns(threads: Iterable[ThreadTotals], kind: Kind) -> int:
    return sum(thread.lost[kind].ns for thread in threads)


def _held_in_windows_ns(threads: Iterable[ThreadTotals]) -> int | None:
    held = [thread.held.ns for thread in threads if thread.held is not None]
    return sum(held) if held else None


def _pairs(before: Iterable[Edge], now: Iterable[Edge]) -> tuple[PairRates, ...]:
    earlier = _tallies(before)
    found = [
        PairRates(*pair, _fewer(total, earlier.get(pair, Tally())), total)
        for pair, total in _tallies(now).items()
    ]
    return tuple(sorted(found, key=lambda pair: (-pair.lost.ns, -pair.total.ns)))


def _tallies(edges: Iterable[Edge]) -> Mapping[_Pair, Tally]:
    found: dict[_Pair, Tally] = {}
    for edge in edges:
        pair = (edge.kind, edge.waiter, edge.holder)
        found[pair] = found.get(pair, Tally()) + edge.lost
    return found


def _fewer(now: Tally, before: Tally) -> Tally:
    return Tally(max(0, now.ns - before.ns), max(0, now.count - before.count))


def _held_ns(before: ProcessTotals, now: ProcessTotals) -> int | None:
    earlier = {gil.gil: gil.held_ns for gil in before.gils}
    gains = [_gain(earlier.get(gil.gil), gil.held_ns) for gil in now.gils]
    # An estimate may be more than there was time.
    most_ns = max(0, now.at_ns - before.at_ns)
    known = [min(gain, most_ns) for gain in gains if gain is not None]
    return sum(known) if known else None


def _gain(before_ns: int | None, now_ns: int | None) -> int | None:
    return None if now_ns is None else max(0, now_ns - (before_ns or 0))
