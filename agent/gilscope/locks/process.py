"""One traced process with locks: the names of its places, and whether it is still seen."""

import contextlib
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from gilscope.locks.probe import RawPlace
from gilscope.locks.stops import stops_of
from gilscope.locks.target import LockTarget
from gilscope.locks.totals import RawLocks, added_up, threads_of
from gilscope.model.gil import TracingCost
from gilscope.model.locks import LockObservation, LockTotals
from gilscope.model.stack import UNKNOWN_FRAME, UNKNOWN_STACK, Stack, StackState
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.values import Record, dataclass
from gilscope.windows.attachment import WindowedAttachment

__all__ = ["AttachedLocks"]

_MOST_STACKS = 20_000


@dataclass(slots=True, kw_only=True)
class AttachedLocks(WindowedAttachment):
    """Its breakpoints are there while its window is open."""

    target: LockTarget
    code: CodeReader
    stacks: dict[int, Stack] = field(default_factory=dict)
    """By the ids that the probes know them by."""
    dead: RawLocks = field(default_factory=lambda: RawLocks(0))
    """What threads that have ended had waited for."""

    @property
    def its_target(self) -> LockTarget:
        """What it was attached by."""
        return self.target

    @property
    def has_flights(self) -> bool:
        """Whether what is in flight will count: nothing counts that outlasts a window."""
        return self.window.is_whole and self.window.is_open

    def learn(self, places: Mapping[int, RawPlace]) -> None:
        """Read the names of *places*, which are new, by their ids, while their code is there."""
        for number, place in places.items():
            if len(self.stacks) < _MOST_STACKS:
                self.stacks[number] = self._named(place)

    def _named(self, place: RawPlace) -> Stack:
        with contextlib.suppress(OSError):
            frames = self.reads(lambda: self.code.frames(place.places))
            same = self.reads(
                lambda: [
                    self.code.is_same(code, identity)
                    for (code, _), identity in zip(place.places, place.identities, strict=True)
                ]
            )
            for (code, _), is_same in zip(place.places, same, strict=True):
                if not is_same:
                    self.code.forget(code)
            shown = tuple(
                frame if is_same else UNKNOWN_FRAME
                for frame, is_same in zip(frames, same, strict=True)
            )
            if any(frame is not UNKNOWN_FRAME for frame in shown):
                return Stack(shown, StackState.CUT if place.is_cut else StackState.WHOLE)
        return UNKNOWN_STACK

    def is_over(self) -> bool:
        """Return whether nothing is seen of the program any more; then `invalid` says why."""
        if self.reads.stopped or not self.runs_the_same():
            self.invalid = self.reads.stopped
            return True
        return False

    def keep_dead(self, raw: RawLocks, *, is_listed: bool) -> tuple[list[int], list[Record]]:
        """Take over what threads of *raw* that have ended had waited for; *raw* lacks it then.

        With *is_listed* they stay listed, else what they had waited for is added up, as that of a
        thread with the number 0. Returns the threads, and the keys of what they had waited for:
        none of it changes any more.
        """
        ended = [tid for tid, thread in raw.threads.items() if thread["exited_ns"]]
        gone = set(ended)
        taken = [pair for pair in raw.waits if pair[0]["tid"] in gone]
        raw.waits = [pair for pair in raw.waits if pair[0]["tid"] not in gone]
        threads = {tid: raw.threads.pop(tid) for tid in ended}
        self.dead.waits += taken
        if is_listed:
            self.dead.threads |= threads
        elif taken:
            self.dead.waits = added_up(self.dead.waits)
        return ended, [key for key, _ in taken]

    def observation(self, raw: RawLocks, cost: TracingCost | None) -> LockObservation:
        """Return the process as a report shows it, with its threads that have ended."""
        at_ns = raw.at_ns if self.ended_ns is None else min(raw.at_ns, self.ended_ns)
        whole = RawLocks(
            at_ns,
            self.dead.threads | raw.threads,
            [*self.dead.waits, *raw.waits],
            raw.stops,
            raw.lost,
        )
        return LockObservation(
            self.target.process,
            self.since_ns,
            LockTotals(
                at_ns=at_ns,
                threads=threads_of(whole, self.stacks, has_flights=self.has_flights),
                stops=stops_of(raw, self.stacks),
                lost_events=dict(Counter(raw.lost)),
                traps=raw.traps,
            ),
            self.invalid,
            self.ended,
            cost=cost,
            observed_ns=self.observed_ns(at_ns),
            is_whole=self.window.is_whole,
        )

    def unread(self) -> LockObservation:
        """Return the same where what was counted cannot be read."""
        reason = self.invalid or "what its probes have counted cannot be read"
        totals = LockTotals(time.monotonic_ns())
        return LockObservation(self.target.process, self.since_ns, totals, reason, self.ended)
