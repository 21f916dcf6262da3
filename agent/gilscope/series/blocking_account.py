"""Keeps, for one traced process, what is known by name of who kept whom waiting."""

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import (
    Edge,
    GilObservation,
    HeldBy,
    HeldUp,
    HolderSamples,
    ProcessTotals,
    SlowDrop,
    Tally,
)
from gilscope.model.kinds import Kind
from gilscope.model.moment.hold_state import HoldState, State
from gilscope.model.stack import Stack
from gilscope.naming.application import application_frame
from gilscope.naming.hold_states import telling_states
from gilscope.naming.places import SiteNames
from gilscope.series.by_name.blame_series import (
    FALSE,
    NOTHING,
    TRUE,
    BlameSeries,
    BlameSlots,
    blame_ledgers,
    limits_of,
)
from gilscope.series.by_name.ledger import Labels, Line
from gilscope.series.by_name.owners import Owner
from gilscope.series.by_name.service_book import ServiceBook
from gilscope.series.by_name.top_series import Sums, shown_over_time, sums_of
from gilscope.series.held_by import HeldPlace, held_places
from gilscope.series.lately import Held, Lately, RecentHolder, RecentPair, SlowHolder
from gilscope.series.recent_losses import RecentLosses
from gilscope.series.roles import RoleAccount, RoleFigures
from gilscope.text.printable import label

__all__ = ["BlockingAccount"]


_LEAST_HELD = 0.05
"""Of the time: less is told by none of the live views."""


class BlockingAccount:
    """The books of one process. What it has lost is entered again and again, as a whole."""

    def __init__(
        self,
        seen: GilObservation,
        owner: Owner,
        limit: int,
        application: Application = EVERYBODYS,
        service: ServiceBook | None = None,
    ) -> None:
        """Begin for the process in *seen*, with series of their own for at most *limit* pairs.

        They are those of *owner*. Where that is a *service* they are made of its book.
        """
        self.since_ns = seen.since_ns
        self.owner = owner
        self._application = application
        self._names = SiteNames()
        knows = seen.process.knows_causes
        kinds = [kind.value for kind in Kind if (kind is Kind.UNKNOWN) != knows]
        self._ledgers = blame_ledgers(
            kinds,
            None if service is None else service.ledgers,
            asks_holder=seen.process.asks_holder,
        )
        self._slots = None if service is not None else BlameSlots(self._ledgers, limits_of(limit))
        self._roles = RoleAccount(None if service is None else service.roles)
        self._limit = limit
        self._recent = RecentLosses(seen.since_ns)
        self._recent_holders = RecentLosses(seen.since_ns)
        self._totals = replace(seen.totals, edges=(), slow_drops=(), held_up=())

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
            self._ledgers.pairs.update(
                [(id(edge.waiter), id(edge.holder), id(edge.kind)) for edge in edges],
                [edge.lost for edge in edges],
                edges,
                self._pair,
            )
        if totals.held_up is not before.held_up:
            self._ledgers.holders.update(
                [(id(each.holder), id(each.kind), each.state.state) for each in totals.held_up],
                [Tally(each.ns) for each in totals.held_up],
                totals.held_up,
                self._whose,
            )
        if set(map(id, slow_drops)) != set(map(id, before.slow_drops)):
            self._ledgers.slow.update(
                [id(slow_drop.holder) for slow_drop in slow_drops],
                [slow_drop.drop_latency for slow_drop in slow_drops],
                slow_drops,
                self._slow_holder,
            )
        self._enter_samples(totals.holder_samples)
        self._recent.sample(totals.at_ns, self._ledgers.pairs.lines)
        self._recent_holders.sample(totals.at_ns, self._ledgers.holders.lines)

    def _enter_samples(self, samples: HolderSamples | None) -> None:
        holders = () if samples is None else samples.holders
        self._ledgers.held.update(
            [id(held.holder) for held in holders],
            [Tally(held.held_ns) for held in holders],
            holders,
            self._held_by,
        )

    def blame(self, at_ns: int) -> BlameSeries:
        """Return what the series of the process show now, at *at_ns*."""
        return NOTHING if self._slots is None else self._slots.blame(at_ns)

    def role_figures(self, at_ns: int) -> tuple[RoleFigures, ...]:
        """Return what the series of thread roles show now, at *at_ns*."""
        return self._roles.figures(at_ns)

    def sums(self) -> tuple[Sums, ...]:
        """Return what has been lost and held so far, for `over_time`."""
        return tuple(map(sums_of, self._ledgers.all))

    def over_time(self, times: Sequence[tuple[Sums, ...]]) -> tuple[BlameSeries, ...]:
        """Return the series at each of *times*, of a process that nobody has seen before."""
        shown = (
            shown_over_time(ledger, sums, self._limit, width)
            for ledger, sums, width in zip(
                self._ledgers.all, zip(*times, strict=True), (2, 1, 1, 1), strict=True
            )
        )
        return tuple(map(BlameSeries, *shown))

    def lately(self, most: int) -> Lately:
        """Return what has been lost lately, with *most* holders, pairs and slow holders."""
        at_ns, lines = self._totals.at_ns, self._ledgers.pairs.lines
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
            held=self._held_places()[:most],
        )

    def _held_places(self) -> tuple[Held, ...]:
        samples = self._totals.holder_samples
        if samples is None:
            return ()
        return tuple(
            self._held_place(place)
            for place in held_places(samples, self._application)
            if place.share >= _LEAST_HELD
        )

    def _held_place(self, place: HeldPlace) -> Held:
        leaf = self._name(place.costliest)
        name = leaf if place.frame is None else label(self._names.site(place.frame))
        inner = "" if leaf == name else leaf
        return Held(name, inner, place.share, place.error, place.states)

    def _lately_holders(self, at_ns: int, most: int) -> tuple[RecentHolder, ...]:
        lines = self._ledgers.holders.lines
        by_place: Counter[str] = Counter()
        states: dict[str, list[tuple[HoldState, int]]] = defaultdict(list)
        for line, ns in zip(lines, self._recent_holders.lost_ns(at_ns, lines), strict=True):
            by_place[line.place.names[0]] += ns
            states[line.place.names[0]].append((HoldState(State(line.kind[-1])), ns))
        costliest = [(place, ns) for place, ns in by_place.most_common(most) if ns > 0]
        inner = self._inner() if costliest else {}
        return tuple(
            RecentHolder(place, inner.get(place, ""), ns, telling_states(states[place]))
            for place, ns in costliest
        )

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
        costliest = sorted(self._ledgers.slow.lines, key=lambda line: -line.ns)
        return tuple(
            SlowHolder(name, Tally(line.ns, line.count), longest_ns[name], in_flight_ns[name])
            for line in costliest
            for name in line.place.names
            if line.count
        )

    def _pair(self, edge: Edge) -> tuple[Labels, Labels]:
        return (self._name(edge.waiter), self._name(edge.holder)), (edge.kind.value,)

    def _whose(self, held_up: HeldUp) -> tuple[Labels, Labels]:
        own = self._own(held_up.holder)
        how = held_up.kind.value, held_up.state.state.value
        if own is None:
            return (self._name(held_up.holder),), (FALSE, *how)
        return (own,), (TRUE, *how)

    def _held_by(self, held: HeldBy) -> tuple[Labels, Labels]:
        own = self._own(held.holder)
        if own is None:
            return (self._name(held.holder),), (FALSE,)
        return (own,), (TRUE,)

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
