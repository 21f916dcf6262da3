"""One traced process with locks: the names of its places, and whether it is still seen."""

import contextlib
from collections import Counter
from dataclasses import dataclass, field

from gilscope.locks.cost import LockCost
from gilscope.locks.probe import LockProbe, RawPlace
from gilscope.locks.target import LockTarget
from gilscope.locks.totals import RawLocks, threads_of
from gilscope.model.gil import Record
from gilscope.model.locks import LockObservation, LockTotals
from gilscope.model.stack import UNKNOWN_FRAME, UNKNOWN_STACK, Stack, StackState
from gilscope.process.attachment import Attachment
from gilscope.process.breakpoints import first_missing
from gilscope.runtimes.cpython.code.code_objects import CodeReader

__all__ = ["AttachedLocks"]

_MOST_STACKS = 20_000


@dataclass(slots=True, kw_only=True)
class AttachedLocks(Attachment):
    """Its breakpoints are there until it has ended."""

    target: LockTarget
    code: CodeReader
    cost: LockCost
    stacks: dict[int, Stack] = field(default_factory=dict)
    """By the ids that the probes know them by."""
    dead: RawLocks = field(default_factory=lambda: RawLocks(0))
    """What threads that have ended had waited for."""

    def learn_stacks(self, probe: LockProbe) -> None:
        """Read the names of places that are new, while their code is there."""
        for number, place in probe.stacks(self.pid, frozenset(self.stacks)).items():
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
        """Return whether nothing is seen of the program any more; then `invalid` says why.

        It says nothing where the program has ended, or was replaced.
        """
        if self.reads.stopped or not self.runs_the_same():
            self.invalid = self.reads.stopped
            return True
        return False

    def has_lost_probes(self) -> bool:
        """Return whether a probe has gone from the code; then `invalid` says so."""
        if self.ended:
            return False
        try:
            missing = self.reads(lambda: first_missing(self.memory, self.breakpoints))
        except OSError:
            return False  # it runs another program, or does not answer, as `is_over` will say
        if missing is not None:
            self.invalid = f"its probe at {missing:#x} has gone: something writes over its code"
        return missing is not None

    def keep_dead(self, raw: RawLocks) -> tuple[list[int], list[Record]]:
        """Take over what threads of *raw* that have ended had waited for; *raw* lacks it then.

        Returns the threads, and the keys of what they had waited for: none of it changes any more.
        """
        ended = [tid for tid, thread in raw.threads.items() if thread["exited_ns"]]
        gone = set(ended)
        taken = [pair for pair in raw.waits if pair[0]["tid"] in gone]
        raw.waits = [pair for pair in raw.waits if pair[0]["tid"] not in gone]
        self.dead.waits += taken
        self.dead.threads |= {tid: raw.threads.pop(tid) for tid in ended}
        return ended, [key for key, _ in taken]

    def observation(self, raw: RawLocks) -> LockObservation:
        """Return the process as a report shows it, with its threads that have ended."""
        whole = RawLocks(
            raw.at_ns, self.dead.threads | raw.threads, [*self.dead.waits, *raw.waits], raw.lost
        )
        traps = sum(thread["traps"] for thread in whole.threads.values())
        return LockObservation(
            self.target.process,
            self.since_ns,
            LockTotals(
                at_ns=raw.at_ns,
                threads=threads_of(whole, self.stacks),
                lost_events=dict(Counter(raw.lost)),
                traps=traps,
            ),
            self.invalid,
            self.ended,
            self.cost.cost(traps, is_alive=not self.ended),
        )
