"""Says by name who kept whom waiting in one process."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gilscope.gil.abi import RawStackState, StackId
from gilscope.gil.totals.apportion import Apportionment
from gilscope.gil.totals.process_totals import kind_so_far, waiting_since_ns
from gilscope.gil.totals.raw import RawEdge, RawProcess, RawStack, Taken
from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.fieldwise import larger
from gilscope.model.gil import Edge, SlowDrop, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_FRAME, UNKNOWN_STACK, Frame, Stack, StackState
from gilscope.naming.application import application_frame
from gilscope.naming.roles import telling_frames
from gilscope.runtimes.base import Code
from gilscope.text.printable import LONGEST_LABEL, label

__all__ = ["Blame"]

_KINDS = {kind.number: kind for kind in Kind}
_STATES = {state.value: StackState[state.name] for state in RawStackState}
_FIRST_READ_ID = 16
"""Ids below are not those of stacks that were read."""

_MOST_STACKS = 20_000
_MOST_PAIRS = 5_000
"""That are told apart; of further ones the holder is, whoever waited for it."""
_MOST_HOLDERS = 1_000
"""Of these; further ones are attributed to unknown stacks."""
_MOST_PLACES = 2 * _MOST_PAIRS
"""Different stacks that are kept; further ones are unknown."""

_LEFT_OUT = -1
"""Place of the stacks of waits that were left out by random sampling, until they are shared out."""

_Pair = tuple[int, int, int]
"""Number of the kind, places of waiter and holder in the list of stacks."""


class Blame:
    """The stacks of one process and the time that they have kept each other waiting.

    Times never fall. With *keep_callers* stacks are told apart as a whole, without by their
    innermost frame and the innermost one of the application, so that a process that runs for
    ever takes no more memory.
    """

    def __init__(
        self, code: Code, application: Application = EVERYBODYS, *, keep_callers: bool
    ) -> None:
        """Have names read by *code*."""
        self._codes = code
        self._application = application
        self._keep_callers = keep_callers
        # One object and one number for a stack, by which others may know it.
        self._stacks: list[Stack] = []
        self._places: dict[Stack, int] = {}
        self._by_id: dict[int, int] = {}
        self._outermost: dict[int, Sequence[Frame]] = {}
        self._unknown = 0
        self._place(UNKNOWN_STACK)
        self._by_id[StackId.NO_PYTHON] = self._place(Stack((), StackState.NO_PYTHON))
        self._verified: dict[int, int] = {}
        """Identity of the code objects whose names have been read."""
        self._kept: dict[_Pair, RawEdge] = {}
        self._kept_slow_drops: dict[int, RawEdge] = {}
        self._left_out: Apportionment[_Pair] = Apportionment(lambda pair: pair[0])
        self._edges: dict[_Pair, Edge] = {}
        self._slow_drops: dict[int, SlowDrop] = {}

    def learn(self, raw: RawStack) -> None:
        """Read the names of a stack that the probes have met, while its code is there."""
        if raw.id in self._by_id:
            return
        frames = self._frames(raw)
        if all(frame is UNKNOWN_FRAME for frame in frames):
            self._by_id[raw.id] = self._unknown
        else:
            state = _STATES[raw.state]
            stack = Stack(frames, state)
            self._by_id[raw.id] = self._place(stack if self._keep_callers else self._ends(stack))
            if state is not StackState.CUT:
                self._outermost[raw.id] = tuple(map(_shortened, telling_frames(frames[::-1])))

    def outermost(self, stack_id: int) -> Sequence[Frame]:
        """Return the frames of a stack that tell a role, outermost first; empty: not known."""
        return self._outermost.get(stack_id, ())

    def stack(self, stack_id: int) -> Stack:
        """Return the stack that the probes know by *stack_id*."""
        return self._stacks[self._by_id.get(stack_id, self._unknown)]

    @property
    def kept_ns(self) -> int:
        """The waiting time that has been taken over for good."""
        return sum(edge.ns for edge in self._kept.values())

    def keep(self, taken: Taken) -> None:
        """Add what has left the tables. Their stacks have been sent long before."""
        for (kind, waiter, holder), edge in taken.edges.items():
            pair = (kind, self._place_of(waiter), self._place_of(holder))
            self._add(self._kept, pair, edge)
        for holder, slow_drop in taken.slow_drops.items():
            place = self._place_of(holder)
            known = self._kept_slow_drops.get(place)
            self._kept_slow_drops[place] = slow_drop if known is None else known + slow_drop

    def edges(self, process: RawProcess, now_ns: int, *, is_final: bool) -> tuple[Edge, ...]:
        """Return what *process* shows at *now_ns*, the costliest first.

        What was left out by random sampling is shared out among the others.

        Unless this is *final*, what may still be attributed to somebody else is left out: short
        waits in flight, waits whose holder has not been sampled yet, and stacks that have not
        been sent.
        """
        sums = dict(self._kept)
        for (kind, waiter, holder), edge in process.edges.items():
            self._add_if_known(sums, kind, waiter, holder, edge, is_final=is_final)
        for tid, waiting in process.waiting.items():
            record = process.threads[tid]
            kind_now = kind_so_far(record, now_ns - waiting_since_ns(record))
            is_open = kind_now is Kind.BLOCKING_CALL or not (waiting.waiter and waiting.holder)
            if is_open and not is_final:
                continue
            last = RawEdge(max(0, now_ns - waiting.since_ns), 0)
            for holder, edge in (*waiting.slices, (waiting.holder, last)):
                number = kind_now.number
                self._add_if_known(sums, number, waiting.waiter, holder, edge, is_final=is_final)
        left_out = {(kind, _LEFT_OUT, _LEFT_OUT) for kind in range(len(_KINDS))}
        shown = self._left_out.share_out(sums, left_out)
        if is_final:
            for kind, edge in self._left_out.rest().items():
                self._add(shown, (kind, self._unknown, self._unknown), edge)
        for pair, edge in shown.items():
            self._show(pair, edge)
        return tuple(sorted(self._edges.values(), key=lambda edge: -edge.lost.ns))

    def slow_drops(
        self, process: RawProcess, now_ns: int, *, is_final: bool
    ) -> tuple[SlowDrop, ...]:
        """Return who was slow to release in *process* up to *now_ns*, the costliest first.

        Requests in flight count up to then; unless this is *final*, those whose holder is known.
        """
        shown = dict(self._kept_slow_drops)
        for holder, edge in process.slow_drops.items():
            if is_final or self._is_settled(holder):
                at = self._place_of(holder)
                shown[at] = shown[at] + edge if at in shown else edge
        in_flight: dict[int, int] = {}
        for request in process.unanswered:
            if is_final or self._is_settled_holder(request.holder):
                at = max(self._unknown, self._place_of(request.holder))
                ns = max(0, now_ns - request.asked_ns)
                shown[at] = shown.get(at, RawEdge(0, 0)) + RawEdge(ns, 1, ns)
                in_flight[at] = max(in_flight.get(at, 0), ns)
        self._end_in_flight(in_flight)
        for place, edge in shown.items():
            self._show_slow_drop(place, edge, in_flight.get(place, 0))
        return tuple(sorted(self._slow_drops.values(), key=lambda one: -one.drop_latency.ns))

    def kept(self, stack: Stack) -> Stack:
        """Return *stack* as it is kept: as a whole, or its two ends alone."""
        frames = tuple(frame for frame in stack.frames if not _is_shim(frame))
        whole = Stack(frames, stack.state)
        return whole if self._keep_callers else self._ends(whole)

    def surplus(self, process: RawProcess) -> set[int]:
        """Forget and return stacks that nothing is attributed to now, if there are too many."""
        if len(self._by_id) < _MOST_STACKS:
            return set()
        used = {stack for _, *pair in process.edges for stack in pair} | set(process.slow_drops)
        for waiting in process.waiting.values():
            used |= {waiting.waiter, waiting.holder, *(holder for holder, _ in waiting.slices)}
        used |= {request.holder for request in process.unanswered}
        used |= {trace.longest_holder for trace in process.traces.values()}
        surplus = {known for known in self._by_id if known >= _FIRST_READ_ID} - used
        for known in surplus:
            del self._by_id[known]
            self._outermost.pop(known, None)
        return surplus

    def _frames(self, raw: RawStack) -> tuple[Frame, ...]:
        whole = self._codes.whole_stack(raw.places)
        if whole is not None:
            return whole
        if len(self._verified) > _MOST_STACKS:
            self._verified.clear()
        codes = [code for code, _ in raw.places]
        for code, identity in zip(codes, raw.identities, strict=True):
            if self._verified.get(code, identity) != identity:
                # Another code object has got the memory.
                self._codes.forget(code)
        frames = self._codes.frames(raw.places)
        shown = (
            frame if self._is_of(code, identity) else UNKNOWN_FRAME
            for frame, code, identity in zip(frames, codes, raw.identities, strict=True)
        )
        return tuple(frame for frame in shown if not _is_shim(frame))

    def _is_of(self, code: int, identity: int) -> bool:
        """Return whether what has been read of *code* belongs to the one with that identity."""
        if self._verified.get(code) == identity:
            return True
        # Asked afterwards: what has been read belongs to the code that is there still.
        if not self._codes.is_same(code, identity):
            self._codes.forget(code)
            return False
        self._verified[code] = identity
        return True

    def _ends(self, stack: Stack) -> Stack:
        """Return *stack* with its innermost frame, and the innermost one of the application."""
        own = application_frame(stack, self._application)
        frames = stack.frames[:1] if own is None else (*stack.frames[:1], own)
        return Stack(tuple(map(_shortened, dict.fromkeys(frames))), stack.state)

    def _place(self, stack: Stack) -> int:
        place = self._places.get(stack)
        if place is None:
            if len(self._stacks) >= _MOST_PLACES:
                return self._unknown
            place = self._places[stack] = len(self._stacks)
            self._stacks.append(stack)
        return place

    def _place_of(self, stack_id: int) -> int:
        if stack_id == StackId.UNSAMPLED:
            return _LEFT_OUT
        return self._by_id.get(stack_id, self._unknown)

    def _add_if_known(  # noqa: PLR0913 - the fields of an edge
        self,
        sums: dict[_Pair, RawEdge],
        kind: int,
        waiter: int,
        holder: int,
        edge: RawEdge,
        *,
        is_final: bool,
    ) -> None:
        if is_final or (self._is_settled(waiter) and self._is_settled(holder)):
            self._add(sums, (kind, self._place_of(waiter), self._place_of(holder)), edge)

    def _is_settled(self, stack_id: int) -> bool:
        return stack_id < _FIRST_READ_ID or stack_id in self._by_id

    def _add(self, sums: dict[_Pair, RawEdge], pair: _Pair, edge: RawEdge) -> None:
        # What was left out of each kind is shared out in the end, and shown nowhere by itself.
        is_new = pair not in sums and pair not in self._edges and pair[1] != _LEFT_OUT
        if is_new and max(len(self._edges), len(sums)) >= _MOST_PAIRS:
            pair = (pair[0], self._unknown, pair[2])
            is_full = max(len(self._edges), len(sums)) >= _MOST_PAIRS + _MOST_HOLDERS
            if is_full and pair not in sums and pair not in self._edges:
                pair = (pair[0], self._unknown, self._unknown)
        sums[pair] = sums[pair] + edge if pair in sums else edge

    def _is_settled_holder(self, stack_id: int) -> bool:
        is_found = stack_id not in {StackId.NONE, StackId.UNSAMPLED}
        return is_found and self._is_settled(stack_id)

    def _end_in_flight(self, in_flight: Mapping[int, int]) -> None:
        """Note of the requests that are not *in_flight* any more that they have been answered."""
        for place, known in self._slow_drops.items():
            if known.in_flight_ns and place not in in_flight:
                self._slow_drops[place] = replace(known, in_flight_ns=0)

    def _show_slow_drop(self, place: int, edge: RawEdge, in_flight_ns: int) -> None:
        shown = edge
        known = self._slow_drops.get(place)
        if known is not None:
            # What has been answered between two tables is in neither of them for once.
            before = known.drop_latency
            shown = larger(edge, RawEdge(before.ns, before.count, known.longest_ns))
        tally = Tally(shown.ns, shown.count)
        slow_drop = SlowDrop(self._stacks[place], tally, shown.longest_ns, in_flight_ns)
        if slow_drop != known:
            self._slow_drops[place] = slow_drop

    def _show(self, pair: _Pair, edge: RawEdge) -> None:
        known = self._edges.get(pair)
        if known is None:
            tally = Tally(edge.ns, edge.count)
        else:
            # What a wait in flight adds may have been seen a little later the last time.
            tally = Tally(max(known.lost.ns, edge.ns), max(known.lost.count, edge.count))
        if known is None or known.lost != tally:
            kind, waiter, holder = pair
            self._edges[pair] = Edge(
                _KINDS[kind], self._stacks[waiter], self._stacks[holder], tally
            )


def _is_shim(frame: Frame) -> bool:
    # Since CPython 3.13 it stands between the call of a class and its __init__, and runs no line.
    return frame.function == "__init__" and frame.line is None


def _shortened(frame: Frame) -> Frame:
    # A program may give its functions and files names of thousands of characters, and ever new
    # ones. Whoever keeps these for good keeps what a label shows.
    if max(len(frame.function), len(frame.file)) <= LONGEST_LABEL:
        return frame
    return replace(frame, function=label(frame.function), file=label(frame.file))
