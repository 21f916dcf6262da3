"""Keeps what is known by name of who kept whom waiting in one traced process."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gilscope.model import Culprit, Edge, Kind, Observation, ProcessTotals, Stack, Tally
from gilscope.pair_slots import PairSlots, Shown, Sums, shown_over_time, sums_of
from gilscope.printable import label
from gilscope.recent_losses import RecentLosses
from gilscope.role_account import RoleAccount, RoleFigures
from gilscope.site_totals import Labels, Line, SiteTotals
from gilscope.stacks import SiteNames

__all__ = ["BlameAccount", "BlameSeries", "Lately", "RecentPair", "SlowHolder"]


@dataclass(frozen=True, slots=True)
class BlameSeries:
    """The series of one process."""

    pairs: tuple[Shown, ...]
    """By waiter, holder and kind."""
    slow_holders: tuple[Shown, ...]
    """By holder."""


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


@dataclass(frozen=True, slots=True)
class Lately:
    """What one process has lost in a period: about the last minute, if it can be."""

    period_ns: int
    is_all: bool
    """Whether the period is all the time for which the process is traced."""
    lost_ns: int
    pairs: tuple[RecentPair, ...]
    """The dearest first; only those that have lost anything."""
    slow_holders: tuple[SlowHolder, ...]
    """The dearest first, of all the time for which the process is traced."""


class BlameAccount:
    """The books of one process. What it has lost is entered again and again, as a whole."""

    def __init__(self, seen: Observation, limit: int) -> None:
        """Begin for the process in *seen*, with series of their own for at most *limit* pairs."""
        self.since_ns = seen.since_ns
        self._names = SiteNames()
        # What can be lost is there before anything is: the first loss of a kind is an increase.
        knows = seen.process.knows_causes
        self._pairs = SiteTotals((kind.value,) for kind in Kind if (kind is Kind.UNKNOWN) != knows)
        self._holders = SiteTotals([()])
        self._pair_slots = PairSlots(self._pairs, limit, width=2)
        self._holder_slots = PairSlots(self._holders, limit, width=1)
        self._roles = RoleAccount()
        self._limit = limit
        self._recent = RecentLosses(seen.since_ns)
        self._totals = replace(seen.totals, edges=(), culprits=())

    def enter(self, totals: ProcessTotals) -> None:
        """Take over *totals*, which are not older than what was entered before."""
        before, self._totals = self._totals, totals
        if totals is before:
            return
        self._roles.enter(totals.threads)
        # An edge that has not changed is the same object: an idle process costs next to nothing.
        # Otherwise lists beat generators, for there may be hundreds in each of many processes.
        edges, culprits = totals.edges, totals.culprits
        if set(map(id, edges)) != set(map(id, before.edges)):
            self._pairs.update(
                [(id(edge.waiter), id(edge.holder), id(edge.kind)) for edge in edges],
                [edge.lost for edge in edges],
                edges,
                self._pair,
            )
        if set(map(id, culprits)) != set(map(id, before.culprits)):
            self._holders.update(
                [id(culprit.holder) for culprit in culprits],
                [culprit.drop_latency for culprit in culprits],
                culprits,
                self._holder,
            )
        self._recent.look(totals.at_ns, self._pairs.lines)

    def blame(self) -> BlameSeries:
        """Return what the series show now."""
        at_ns = self._totals.at_ns
        return BlameSeries(self._pair_slots.shown(at_ns), self._holder_slots.shown(at_ns))

    def roles(self) -> tuple[RoleFigures, ...]:
        """Return what the series of thread roles show now."""
        return self._roles.figures(self._totals.at_ns)

    def sums(self) -> tuple[Sums, Sums]:
        """Return what has been lost so far by pairs and by slow holders, for `over_time`."""
        return sums_of(self._pairs), sums_of(self._holders)

    def over_time(self, times: Sequence[tuple[Sums, Sums]]) -> tuple[BlameSeries, ...]:
        """Return the series at each of *times*, of a process that nobody has seen before."""
        pairs = shown_over_time(self._pairs, [sums for sums, _ in times], self._limit, width=2)
        holders = shown_over_time(self._holders, [sums for _, sums in times], self._limit, width=1)
        return tuple(map(BlameSeries, pairs, holders))

    def lately(self, most: int) -> Lately:
        """Return what has been lost lately, with *most* pairs and slow holders."""
        at_ns, lines = self._totals.at_ns, self._pairs.lines
        since_ns = self._recent.since_ns(at_ns)
        lost_ns = self._recent.lost_ns(at_ns, lines)
        dearest = sorted(zip(lost_ns, lines, strict=True), key=lambda lost: -lost[0])
        return Lately(
            period_ns=at_ns - since_ns,
            is_all=since_ns == self.since_ns,
            lost_ns=sum(lost_ns),
            pairs=tuple(_recent_pair(line, ns) for ns, line in dearest[:most] if ns > 0),
            slow_holders=self._slow_holders()[:most],
        )

    def _slow_holders(self) -> tuple[SlowHolder, ...]:
        longest_ns: dict[str, int] = {}
        for culprit in self._totals.culprits:
            name = self._name(culprit.holder)
            longest_ns[name] = max(longest_ns.get(name, 0), culprit.longest_ns)
        dearest = sorted(self._holders.lines, key=lambda line: -line.ns)
        return tuple(
            SlowHolder(name, Tally(line.ns, line.count), longest_ns.get(name, 0))
            for line in dearest
            for name in line.place.names
            if line.count
        )

    def _pair(self, edge: Edge) -> tuple[Labels, Labels]:
        return (self._name(edge.waiter), self._name(edge.holder)), (edge.kind.value,)

    def _holder(self, culprit: Culprit) -> tuple[Labels, Labels]:
        return (self._name(culprit.holder),), ()

    def _name(self, stack: Stack) -> str:
        # Names come from the traced program, which may hold anything.
        return sys.intern(label(self._names.innermost(stack)))  # a site is part of many pairs


def _recent_pair(line: Line, lost_ns: int) -> RecentPair:
    waiter, holder = line.place.names
    (kind,) = line.kind
    return RecentPair(waiter, holder, kind, lost_ns)
