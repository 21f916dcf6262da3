"""Shares out what was lost to a holder among the states in which it kept the GIL.

What was lost is measured; the states are of samples. So the time that is lost from one observation
to the next is shared out by what samples of the same function of the application have shown
meanwhile, of the time that others waited; else by all that they have ever shown of it. A function
that many samples have never met, and nobody waits for long, is in no call for long either.
No figure ever falls, and those of a holder and kind add up to what was lost.
"""

import operator
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import Edge, HeldUp, HolderSamples
from gilscope.model.kinds import Kind
from gilscope.model.moment.hold_state import UNKNOWN_HOLD, HoldState, State
from gilscope.model.stack import Stack
from gilscope.naming.application import application_frame
from gilscope.series.holders import code_of

__all__ = ["HeldUpSums"]

_Weights = Mapping[HoldState, int]
_Holder = tuple[int, Kind]
"""By the id of its stack: to compare thousands of stacks by their frames takes too long."""
_MANY = 20
_BRIEF_NS = 10_000_000
"""For waits that last longer behind a function that is never met, something else is the reason:
the lock is free, say, and the thread that waits has no CPU to take it."""
_BRIEF = {HoldState(State.PYTHON): 1}


class HeldUpSums:
    """What one process has lost so far, by holder, kind and state."""

    def __init__(self, application: Application = EVERYBODYS) -> None:
        """Tell functions of *application* apart."""
        self._application = application
        self._codes: dict[int, tuple[Stack, Hashable]] = {}
        """By id of the stack, which is kept so that nothing else gets that id."""
        self._sampled: dict[Stack, Hashable] = {}
        self._lost_ns: dict[_Holder, int] = {}
        self._sums: dict[_Holder, Counter[HoldState]] = defaultdict(Counter)
        self._seen: dict[Hashable, Counter[HoldState]] = {}
        self._edges: tuple[Edge, ...] = ()
        self._samples: HolderSamples | None = None
        self._shown: tuple[HeldUp, ...] = ()

    def enter(self, edges: tuple[Edge, ...], samples: HolderSamples | None) -> tuple[HeldUp, ...]:
        """Take over what was lost and sampled so far, as a whole; return it by states."""
        # What has not changed is the same object: an idle process costs next to nothing.
        before, self._edges = self._edges, edges
        is_same = len(before) == len(edges) and all(map(operator.is_, before, edges))
        if is_same and samples == self._samples:
            return self._shown
        lost_ns: Counter[_Holder] = Counter()
        waits: Counter[_Holder] = Counter()
        for edge in edges:
            self._code(edge.holder)
            lost_ns[id(edge.holder), edge.kind] += edge.lost.ns
            waits[id(edge.holder), edge.kind] += edge.lost.count
        seen = self._weights(samples)
        self._samples = samples
        for holder, ns in lost_ns.items():
            grown_ns = ns - self._lost_ns.get(holder, 0)
            if grown_ns > 0:
                mean_ns = ns // max(1, waits[holder])
                weights = self._weights_of(self._codes[holder[0]][0], mean_ns, seen)
                self._sums[holder].update(_shares(grown_ns, weights))
                self._lost_ns[holder] = ns
        self._seen = seen
        self._shown = tuple(sorted(self._held_up(), key=lambda each: -each.ns))
        return self._shown

    def _held_up(self) -> Iterator[HeldUp]:
        for (holder, kind), states in self._sums.items():
            for state, ns in states.items():
                yield HeldUp(self._codes[holder][0], kind, state, ns)

    def _weights(self, samples: HolderSamples | None) -> dict[Hashable, Counter[HoldState]]:
        """Return how long others waited for each function, by state; else how long it held it."""
        waited: dict[Hashable, Counter[HoldState]] = defaultdict(Counter)
        held: dict[Hashable, Counter[HoldState]] = defaultdict(Counter)
        for each in () if samples is None else samples.holders:
            code = self._code_of_sample(each.holder)
            held[code][each.state] += each.held_ns
            if each.waited_ns:
                waited[code][each.state] += each.waited_ns
        return {**held, **waited}

    def _weights_of(
        self, holder: Stack, mean_ns: int, now: Mapping[Hashable, Counter[HoldState]]
    ) -> _Weights:
        code = self._code(holder)
        weights = now.get(code, Counter())
        number = 0 if self._samples is None else self._samples.samples
        is_brief = mean_ns <= _BRIEF_NS and bool(holder.frames) and number >= _MANY
        return weights - self._seen.get(code, Counter()) or weights or (_BRIEF if is_brief else {})

    def _code_of_sample(self, stack: Stack) -> Hashable:
        # These are made anew for what is open still: ids of them would be ever new ones.
        if stack not in self._sampled:
            self._sampled[stack] = code_of(stack, application_frame(stack, self._application))
        return self._sampled[stack]

    def _code(self, stack: Stack) -> Hashable:
        known = self._codes.get(id(stack))
        if known is None:
            frame = application_frame(stack, self._application)
            known = self._codes[id(stack)] = stack, code_of(stack, frame)
        return known[1]


def _shares(ns: int, weights: _Weights) -> dict[HoldState, int]:
    """Return *ns* in proportion to *weights*, to the last nanosecond."""
    whole = sum(weights.values())
    if not whole:
        return {UNKNOWN_HOLD: ns}
    shares = {state: ns * weight // whole for state, weight in weights.items()}
    most = max(weights, key=weights.__getitem__)
    shares[most] += ns - sum(shares.values())
    return {state: share for state, share in shares.items() if share}
