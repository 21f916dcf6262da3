"""Estimates what a change of the program would bring, out of what was recorded and nothing else.

Each formula stands at its function, with what it takes for granted; docs/advice.md has them too.
"""

import math
from collections.abc import Hashable

from gilscope.model.application import Application
from gilscope.model.gil import Edge, ProcessTotals, Recording, Tally
from gilscope.model.histogram import total
from gilscope.model.kinds import Kind
from gilscope.model.moment.hold_state import State
from gilscope.model.stack import Frame, Stack
from gilscope.naming.application import application_frame
from gilscope.series.holders import code_of, losses_by_holder
from gilscope.values import dataclass
from gilscope.verdict.role_losses import role_losses

__all__ = [
    "Changes",
    "FewerThreads",
    "OtherProcess",
    "ShorterInterval",
    "changes_of",
    "fewer_threads",
    "other_process",
    "shorter_interval",
]

_LEAST_WAITS = 10
"""Of which a mean says something."""
_SHORTER = 10
"""By so much the switch interval is divided."""
_LEAST_INTERVAL_NS = 100_000
"""A shorter one is about as long as a drop takes."""
_LEAST_GAIN = 0.1
"""Of a wait, of a place's share, or of a thread: what is less is not worth the change."""
_FEW_THREADS = 16
"""Of one role: they are likely to have been there all the time."""
_NOT_MENDED = {State.NO_CPU, State.PAGE_FAULT}
"""What keeps a thread in these states keeps it in another process as well."""


@dataclass(frozen=True, slots=True)
class ShorterInterval:
    """The waits of a whole switch interval, if that were shorter."""

    interval_ns: int
    shorter_ns: int
    waits: int
    """Of a whole interval, of all threads."""
    wait_ns: int
    """How long one takes now, on average."""
    latency_ns: int
    """How long holders take to drop the GIL as a rule: the median."""

    @property
    def switches(self) -> float:
        """How many times as many switches there would be."""
        return (self.interval_ns + self.latency_ns) / (self.shorter_ns + self.latency_ns)

    @property
    def expected_ns(self) -> int:
        """How long one would take, if it is made of turns alone."""
        return round(self.wait_ns / self.switches)

    @property
    def least_ns(self) -> int:
        """How long one takes at least: a turn."""
        return self.shorter_ns + self.latency_ns

    @property
    def most_ns(self) -> int:
        """How long one takes if all that is beyond its first interval stays as it is."""
        return max(self.least_ns, self.wait_ns - self.interval_ns + self.shorter_ns)

    @property
    def turns(self) -> float:
        """For how many turns of others one waits now: an interval and a drop each."""
        return self.wait_ns / (self.interval_ns + self.latency_ns)


@dataclass(frozen=True, slots=True)
class OtherProcess:
    """What would not be lost if the code at one place ran in another process."""

    frame: Frame
    """The function of the application, with the line that cost the most."""
    costliest: Stack
    others_ns: int
    """What other code has waited behind it: the most that there is to gain for that."""
    own_ns: int
    """What it has waited behind itself, in several threads."""
    lost_ns: int
    """By all threads, behind whomever."""


@dataclass(frozen=True, slots=True)
class FewerThreads:
    """Threads of one role that take turns."""

    role: str
    threads: int
    waiting: float
    """Of them at any moment, on average, because they were preempted."""
    enough: int
    """How many would get as far."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is worth a change; None: it is not, or it cannot be told."""

    shorter_interval: ShorterInterval | None = None
    other_process: OtherProcess | None = None
    fewer_threads: FewerThreads | None = None

    def __bool__(self) -> bool:
        return any((self.shorter_interval, self.other_process, self.fewer_threads))


def changes_of(recording: Recording) -> Changes:
    """Return what changes would bring in the process of *recording*."""
    totals = recording.observation.totals
    return Changes(
        shorter_interval(totals),
        other_process(totals, recording.application),
        fewer_threads(recording),
    )


def shorter_interval(totals: ProcessTotals) -> ShorterInterval | None:
    """Return what a tenth of the switch interval would make of the waits of a whole one.

    A turn of another thread takes the interval I and the drop latency L. A wait of W takes
    W / (I + L) turns, and with the interval J that many again: W * (J + L) / (I + L). It is taken
    for granted that as many turns are waited for, and that holders drop the GIL as soon as now. L
    is the median: the drops that took much longer were those of a holder without a CPU.

    Where all CPUs are busy, whoever is to drop the GIL, and whoever is to take it, waits for one
    too. That does not shrink with the interval, nor is it known whether it comes as often where
    turns are shorter. So a wait takes from J + L, if it never does, to W - (I - J): of each wait a
    whole interval is known to shrink, and of the rest that is not known.

    None where threads have not waited so, or where drops take so long that it brings nothing.
    """
    intervals = {gil.interval_ns for gil in totals.gils if gil.interval_ns}
    lost = sum((thread.lost[Kind.CONVOY] for thread in totals.threads), start=Tally())
    latency = total(gil.drop_latency for gil in totals.gils)
    if len(intervals) != 1 or lost.count < _LEAST_WAITS or not latency.count:
        return None
    (interval_ns,) = intervals
    shorter_ns = min(interval_ns, max(interval_ns // _SHORTER, _LEAST_INTERVAL_NS))
    found = ShorterInterval(
        interval_ns,
        shorter_ns,
        lost.count,
        lost.ns // lost.count,
        latency.quantile_ns(0.5) or 0,
    )
    return found if found.switches >= 1 + _LEAST_GAIN else None


def other_process(totals: ProcessTotals, application: Application) -> OtherProcess | None:
    """Return what moving the costliest function of *application* elsewhere would save.

    That is the time that other code has waited while the holder was in that function or in what it
    called. It is the most that can be saved: without it, they may wait for somebody else instead.
    Taken for granted are a CPU for the other process, and little that goes back and forth. None
    where there is no such function, where that is next to nothing, or where it kept the GIL for
    want of a CPU or of memory, which another process would have no more of.
    """
    losses = losses_by_holder(totals.edges, application, totals.held_up)
    loss = next((each for each in losses if each.frame is not None), None)
    if loss is None or loss.frame is None:
        return None
    if loss.states and loss.states[0][0] in _NOT_MENDED:
        return None
    code = code_of(loss.costliest, loss.frame)
    own_ns = sum(edge.lost.ns for edge in _behind(totals.edges, code, application))
    lost_ns = max(totals.wait_ns, sum(edge.lost.ns for edge in totals.edges))
    if loss.lost.ns < _LEAST_GAIN * lost_ns:
        return None
    return OtherProcess(loss.frame, loss.costliest, loss.lost.ns - own_ns, own_ns, lost_ns)


def _behind(edges: tuple[Edge, ...], code: Hashable, application: Application) -> tuple[Edge, ...]:
    """Return those of *edges* at both of whose ends is the function *code*."""
    return tuple(
        edge
        for edge in edges
        if code == _code(edge.holder, application) == _code(edge.waiter, application)
    )


def _code(stack: Stack, application: Application) -> Hashable:
    return code_of(stack, application_frame(stack, application))


def fewer_threads(recording: Recording) -> FewerThreads | None:
    """Return how many threads of the role that was preempted most would get as far.

    Of K threads W wait at any moment, because another one was to have its turn: they get as far as
    K - W threads that never wait. It is taken for granted that they need nothing else. None where
    that is no thread less, or where threads come and go, so that nobody can tell how many they are.
    """
    best: FewerThreads | None = None
    for loss in role_losses([recording]):
        waiting = loss.lost.get(Kind.PREEMPTION, Tally()).ns / max(1, recording.duration_ns)
        if not 1 < loss.threads <= _FEW_THREADS:
            continue
        enough = max(1, math.ceil(loss.threads - waiting - _LEAST_GAIN))
        if enough < loss.threads and (best is None or waiting > best.waiting):
            best = FewerThreads(loss.role, loss.threads, waiting, enough)
    return best
