"""Keeps, for every traced process, what is known by name of who kept whom waiting."""

import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import Edge, GilObservation, ProcessTotals, SlowDrop, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import Stack
from gilscope.naming.application import application_frame
from gilscope.naming.places import SiteNames
from gilscope.series.lately import Lately, RecentHolder, RecentPair, SlowHolder
from gilscope.series.ledger import Labels, Ledger, Line
from gilscope.series.recent_losses import RecentLosses
from gilscope.series.roles import RoleAccount, RoleFigures
from gilscope.series.top_series import Shown, Sums, TopSeries, shown_over_time, sums_of
from gilscope.text.printable import label

__all__ = [
    "DEFAULT_PAIRS",
    "BlameSeries",
    "BlockingAccount",
    "BlockingSeries",
    "series_over_time",
]


_TRUE, _FALSE = "true", "false"
"""Of the label ``application``."""


@dataclass(frozen=True, slots=True)
class BlameSeries:
    """The series of one process."""

    pairs: tuple[Shown, ...]
    """By waiter, holder and kind."""
    holders: tuple[Shown, ...]
    """By the holder's place, in the application if it has one there; whether it has; and kind."""
    slow_holders: tuple[Shown, ...]
    """By holder."""


class BlockingAccount:
    """The books of one process. What it has lost is entered again and again, as a whole."""

    def __init__(
        self, seen: GilObservation, limit: int, application: Application = EVERYBODYS
    ) -> None:
        """Begin for the process in *seen*, with series of their own for at most *limit* pairs."""
        self.since_ns = seen.since_ns
        self._application = application
        self._names = SiteNames()
        # What can be lost is there before anything is: the first loss of a kind is an increase.
        knows = seen.process.knows_causes
        kinds = [kind.value for kind in Kind if (kind is Kind.UNKNOWN) != knows]
        self._pairs = Ledger((kind,) for kind in kinds)
        self._holders = Ledger((whose, kind) for whose in (_TRUE, _FALSE) for kind in kinds)
        self._slow = Ledger([()])
        self._pair_slots = TopSeries(self._pairs, limit, width=2)
        self._holder_slots = TopSeries(self._holders, limit, width=1)
        self._slow_slots = TopSeries(self._slow, limit, width=1)
        self._roles = RoleAccount()
        self._limit = limit
        self._recent = RecentLosses(seen.since_ns)
        self._recent_holders = RecentLosses(seen.since_ns)
        self._totals = replace(seen.totals, edges=(), slow_drops=())

    def enter(self, totals: ProcessTotals) -> None:
        """Take over *totals*, which are not older than what was entered before."""
        before, self._totals = self._totals, totals
        if totals is before:
            return
        self._roles.enter(totals.threads)
        # An edge that has not changed is the same object: an idle process costs next to nothing.
        # Otherwise lists beat generators, for there may be hundreds in each of many processes.
        edges, slow_drops = totals.edges, totals.slow_drops
        if set(map(id, edges)) != set(map(id, before.edges)):
            self._pairs.update(
                [(id(edge.waiter), id(edge.holder), id(edge.kind)) for edge in edges],
                [edge.lost for edge in edges],
                edges,
                self._pair,
            )
            self._holders.update(
                [(id(edge.holder), id(edge.kind)) for edge in edges],
                [edge.lost for edge in edges],
                edges,
                self._whose,
            )
        if set(map(id, slow_drops)) != set(map(id, before.slow_drops)):
            self._slow.update(
                [id(slow_drop.holder) for slow_drop in slow_drops],
                [slow_drop.drop_latency for slow_drop in slow_drops],
                slow_drops,
                self._slow_holder,
            )
        self._recent.sample(totals.at_ns, self._pairs.lines)
        self._recent_holders.sample(totals.at_ns, self._holders.lines)

    def blame(self) -> BlameSeries:
        """Return what the series show now."""
        at_ns = self._totals.at_ns
        slots = (self._pair_slots, self._holder_slots, self._slow_slots)
        return BlameSeries(*(each.shown(at_ns) for each in slots))

    def roles(self) -> tuple[RoleFigures, ...]:
        """Return what the series of thread roles show now."""
        return self._roles.figures(self._totals.at_ns)

    def sums(self) -> tuple[Sums, Sums, Sums]:
        """Return what has been lost so far: pairs, holders and slow holders, for `over_time`."""
        return sums_of(self._pairs), sums_of(self._holders), sums_of(self._slow)

    def over_time(self, times: Sequence[tuple[Sums, Sums, Sums]]) -> tuple[BlameSeries, ...]:
        """Return the series at each of *times*, of a process that nobody has seen before."""
        pairs, holders, slow = zip(*times, strict=True)
        return tuple(
            map(
                BlameSeries,
                shown_over_time(self._pairs, pairs, self._limit, width=2),
                shown_over_time(self._holders, holders, self._limit, width=1),
                shown_over_time(self._slow, slow, self._limit, width=1),
            )
        )

    def lately(self, most: int) -> Lately:
        """Return what has been lost lately, with *most* holders, pairs and slow holders."""
        at_ns, lines = self._totals.at_ns, self._pairs.lines
        since_ns = self._recent.since_ns(at_ns)
        lost_ns = self._recent.lost_ns(at_ns, lines)
        costliest = sorted(zip(lost_ns, lines, strict=True), key=lambda lost: -lost[0])
        return Lately(
            period_ns=at_ns - since_ns,
            is_all=since_ns == self.since_ns,
            lost_ns=sum(lost_ns),
            holders=self._lately_holders(at_ns, most),
            pairs=tuple(_recent_pair(line, ns) for ns, line in costliest[:most] if ns > 0),
            slow_holders=self._slow_holders()[:most],
        )

    def _lately_holders(self, at_ns: int, most: int) -> tuple[RecentHolder, ...]:
        lines = self._holders.lines
        by_place: Counter[str] = Counter()
        for line, ns in zip(lines, self._recent_holders.lost_ns(at_ns, lines), strict=True):
            by_place[line.place.names[0]] += ns
        costliest = [(place, ns) for place, ns in by_place.most_common(most) if ns > 0]
        inner = self._inner() if costliest else {}
        return tuple(RecentHolder(place, inner.get(place, ""), ns) for place, ns in costliest)

    def _inner(self) -> dict[str, str]:
        """Return where holders stood most below each place of the application."""
        lost_ns: Counter[int] = Counter()
        stacks: dict[int, Stack] = {}
        for edge in self._totals.edges:
            lost_ns[id(edge.holder)] += edge.lost.ns
            stacks[id(edge.holder)] = edge.holder
        inner: dict[str, str] = {}
        for number, _ in lost_ns.most_common():
            place, leaf = self._own(stacks[number]), self._name(stacks[number])
            if place is not None and place != leaf:
                inner.setdefault(place, leaf)
        return inner

    def _slow_holders(self) -> tuple[SlowHolder, ...]:
        longest_ns: Counter[str] = Counter()
        in_flight_ns: Counter[str] = Counter()
        for slow_drop in self._totals.slow_drops:
            name = self._name(slow_drop.holder)
            longest_ns[name] = max(longest_ns[name], slow_drop.longest_ns)
            in_flight_ns[name] = max(in_flight_ns[name], slow_drop.in_flight_ns)
        costliest = sorted(self._slow.lines, key=lambda line: -line.ns)
        return tuple(
            SlowHolder(name, Tally(line.ns, line.count), longest_ns[name], in_flight_ns[name])
            for line in costliest
            for name in line.place.names
            if line.count
        )

    def _pair(self, edge: Edge) -> tuple[Labels, Labels]:
        return (self._name(edge.waiter), self._name(edge.holder)), (edge.kind.value,)

    def _whose(self, edge: Edge) -> tuple[Labels, Labels]:
        own = self._own(edge.holder)
        if own is None:
            return (self._name(edge.holder),), (_FALSE, edge.kind.value)
        return (own,), (_TRUE, edge.kind.value)

    def _own(self, stack: Stack) -> str | None:
        own = application_frame(stack, self._application)
        return None if own is None else sys.intern(label(self._names.site(own)))

    def _slow_holder(self, slow_drop: SlowDrop) -> tuple[Labels, Labels]:
        return (self._name(slow_drop.holder),), ()

    def _name(self, stack: Stack) -> str:
        # Names come from the traced program, which may hold anything.
        return sys.intern(label(self._names.innermost(stack)))  # a site is part of many pairs


def _recent_pair(line: Line, lost_ns: int) -> RecentPair:
    waiter, holder = line.place.names
    (kind,) = line.kind
    return RecentPair(waiter, holder, kind, lost_ns)


DEFAULT_PAIRS: Final = 50


class BlockingSeries:
    """The books of all processes that are traced. Its methods may be called by several threads.

    An observation that is older than one that was entered already changes nothing. Who holds `turn`
    from before the observation gets figures that are exactly as old as it is.
    """

    def __init__(self, pairs: int = DEFAULT_PAIRS, application: Application = EVERYBODYS) -> None:
        """Give *pairs* pairs of each process series of their own, at most; 0: there are none.

        *application* says which frames are not of libraries.
        """
        self.limit = pairs
        self._application = application
        self.turn = threading.RLock()
        self._accounts: dict[int, BlockingAccount] = {}
        self._at_ns = 0

    def series(self, observations: Iterable[GilObservation]) -> Mapping[int, BlameSeries]:
        """Return what to export of the processes in *observations*, by pid."""
        if not self.limit:
            return {}
        with self.turn:
            return {pid: account.blame() for pid, account in self._entered(observations).items()}

    def roles(
        self, observations: Iterable[GilObservation]
    ) -> Mapping[int, tuple[RoleFigures, ...]]:
        """Return what to export of the thread roles of the processes in *observations*, by pid."""
        with self.turn:
            return {pid: account.roles() for pid, account in self._entered(observations).items()}

    def lately(self, observations: Iterable[GilObservation], most: int) -> Mapping[int, Lately]:
        """Return what the processes in *observations* have lost lately, by pid.

        It has *most* holders, pairs and slow holders of each.
        """
        with self.turn:
            accounts = self._entered(observations)
            return {pid: account.lately(most) for pid, account in accounts.items()}

    def _entered(self, observations: Iterable[GilObservation]) -> dict[int, BlockingAccount]:
        valid = {seen.process.pid: seen for seen in observations if not seen.invalid}
        at_ns = max((seen.totals.at_ns for seen in valid.values()), default=0)
        if at_ns >= self._at_ns:
            self._at_ns = at_ns
            self._accounts = {pid: self._account(pid, seen) for pid, seen in valid.items()}
            for pid, account in self._accounts.items():
                account.enter(valid[pid].totals)
        return {pid: self._accounts[pid] for pid in valid if pid in self._accounts}

    def _account(self, pid: int, seen: GilObservation) -> BlockingAccount:
        account = self._accounts.get(pid)
        if account is None or account.since_ns != seen.since_ns:
            # A process may have replaced its program, or have another's number.
            return BlockingAccount(seen, self.limit, self._application)
        return account


def series_over_time(
    seen: Sequence[GilObservation], application: Application
) -> tuple[BlameSeries, ...]:
    """Return what to export for each snapshot of a recorded process, the last one included."""
    account = BlockingAccount(seen[-1], DEFAULT_PAIRS, application)
    sums = []
    for each in seen:
        account.enter(each.totals)
        sums.append(account.sums())
    return account.over_time(sums)
