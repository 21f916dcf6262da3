"""One traced program with transactions: what is known of it, and whether it is still seen."""

import time
from collections.abc import Sequence
from dataclasses import field, replace

from gilscope.model.gil import TracingCost
from gilscope.model.transactions import StmObservation, StmThread, StmTotals
from gilscope.transactions.places import Places
from gilscope.transactions.target import StmTarget
from gilscope.transactions.totals import RawStm, busiest_first, thread_of, totals_of
from gilscope.values import dataclass
from gilscope.windows.attachment import WindowedAttachment

__all__ = ["MOST_DEAD", "AttachedProgram"]

MOST_DEAD = 4096
"""Threads that have ended, and stay listed at least, the busiest of them; at most twice as many."""


@dataclass(slots=True, kw_only=True)
class AttachedProgram(WindowedAttachment):
    """Its breakpoints are there while its window is open."""

    target: StmTarget
    places: Places
    dead: list[StmThread] = field(default_factory=list)
    """The threads that have ended."""
    has_begun_to_log: bool = False
    """Whether more could be seen of it by another method: it is to be attached to anew."""

    @property
    def its_target(self) -> StmTarget:
        """What it was attached by."""
        return self.target

    @property
    def is_to_be_attached_anew(self) -> bool:
        """Whether more could be seen of it by another method."""
        return self.has_begun_to_log

    def is_over(self) -> bool:
        """Return whether nothing is seen of the program any more; then `invalid` says why.

        It says nothing where the program has ended, or was replaced.
        """
        try:
            event = self.reads(lambda: self.target.event_function(self.memory))
        except OSError:
            self.invalid = self.reads.stopped
            return True
        if self.reads.stopped or not self.runs_the_same():
            self.invalid = self.reads.stopped
            return True
        known = self.target.sites.event_function
        if known is None and event is not None:
            self.has_begun_to_log = True
            self.invalid = "the program has begun to log, and is followed anew by its events"
        elif event != known:
            self.invalid = "the program has ended its log, which is where its events came from"
        return bool(self.invalid)

    def observation(self, raw: RawStm, cost: TracingCost | None) -> StmObservation:
        """Return the process as a report or a scrape shows it, with its threads that have ended."""
        alive = [
            thread_of(tid, record) for tid, record in raw.threads.items() if not record["exited_ns"]
        ]
        # Tables are read on for others.
        at_ns = raw.at_ns if self.ended_ns is None else min(raw.at_ns, self.ended_ns)
        totals = totals_of(
            self.target.process,
            replace(raw, at_ns=at_ns),
            busiest_first([*alive, *self.dead]),
            self.places.named(raw.places),
        )
        return StmObservation(
            self.target.process,
            self.since_ns,
            totals,
            self.invalid,
            self.ended,
            cost=cost,
            observed_ns=self.observed_ns(at_ns),
            is_whole=self.window.is_whole,
        )

    def unread(self) -> StmObservation:
        """Return the same where what was counted cannot be read."""
        none = StmTotals(
            time.monotonic_ns(), 0, None, None, None, None, None, None, None, {}, None, ()
        )
        reason = self.invalid or "what its probes have counted cannot be read"
        return StmObservation(self.target.process, self.since_ns, none, reason, self.ended)

    def take_dead(self, raw: RawStm, *, is_listed: bool) -> Sequence[int]:
        """Return the threads of *raw* that have ended; with *is_listed* they stay listed.

        Their records are final. They leave the map, which never fills up so. Of very many those
        stay listed that did the most.
        """
        ended = [tid for tid, record in raw.threads.items() if record["exited_ns"]]
        if is_listed:
            self.dead += [thread_of(tid, raw.threads[tid]) for tid in ended]
        if len(self.dead) > 2 * MOST_DEAD:
            self.dead.sort(key=_work)
            del self.dead[:-MOST_DEAD]
        return ended


def _work(thread: StmThread) -> tuple[int, int]:
    """Return what puts the busiest of threads last: time and tries of theirs that have ended."""
    ends = (thread.committed, thread.aborted)
    return sum(each.ns for each in ends), sum(each.count for each in ends)
