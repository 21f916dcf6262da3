"""Takes a dump: reads what all threads of a process do, without stopping or probing it."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from gilscope.dump.assemble import Known, dumped_gils, dumped_threads
from gilscope.model.moment.dump import Awaited, Dump, DumpedThread, Step
from gilscope.model.moment.seen import LockNow, ServedRequest, ThreadStack
from gilscope.process import procfs
from gilscope.process.reads import Reads
from gilscope.process.threads.activity import ThreadActivity, read_activity, read_descriptor
from gilscope.process.threads.mutex import MutexMemory
from gilscope.runtimes.base import Build, Standing
from gilscope.values import dataclass
from gilscope.verdict.deadlock import deadlocks_of

__all__ = ["Subject", "take"]

_MOST_THREADS = 4000
_LOOKS = 10
"""A thread that waits for the GIL wakes each switch interval, and runs as soon as it has a CPU."""
_PATIENT_LOOKS = 150
"""At a thread that may be part of a deadlock, on a machine that has no CPU to spare."""
_PAUSE_S = 0.002


@dataclass(frozen=True, slots=True)
class Subject:
    """A process of which a dump is taken, and what is known of it beforehand."""

    name: str
    build: Build
    standing: Standing
    reads: Reads
    roles: Mapping[int, str] = field(default_factory=dict)
    waiting_ns: Mapping[int, int] = field(default_factory=dict)
    """By tid, as a tracer knows it."""
    held_ns: Mapping[int, int] = field(default_factory=dict)
    """By address of the GIL, for how long it has been held at the least."""
    request_of: Callable[[int], ServedRequest | None] = lambda _: None
    """Which request a thread serves, by its descriptor; raises OSError."""

    @property
    def pid(self) -> int:
        """Its number."""
        return self.build.pid

    def known(self, owner_of: Callable[[int], int | None]) -> Known:
        """Return what is known of it besides what its threads do."""
        return Known(
            self.pid,
            self.build.file.image().architecture.call_names,
            self.roles,
            self.waiting_ns,
            self.request_of,
            lambda number: read_descriptor(self.pid, number),
            owner_of,
        )


def take(subject: Subject) -> Dump:
    """Return what the threads of *subject* do now; raises OSError and TornRead."""
    at_ns = time.time_ns()
    tids = sorted(procfs.list_tids(subject.pid))
    with _owners(subject) as owner_of:
        look = _Looker(subject, owner_of)
        # First what changes fastest, and again behind the stacks where it has just changed.
        activities = look.activities(tids[:_MOST_THREADS])
        stacks = subject.standing.stacks(_MOST_THREADS)
        activities = look.settled(activities, _LOOKS)
        threads, locks = look.threads(activities, stacks)
        owners = _owners_ahead(threads, locks)
        if owners:
            # What the owner of a lock waits for decides whether its holder waits for ever.
            activities |= look.settled({tid: activities[tid] for tid in owners}, _PATIENT_LOOKS)
            threads, locks = look.threads(activities, stacks)
        gils = dumped_gils(locks, threads, subject.held_ns)
        deadlocks = deadlocks_of(threads, gils)
        if deadlocks:
            deadlocks = tuple(look.confirmed(deadlocks, threads))
    return Dump(
        pid=subject.pid,
        process=subject.name,
        python=subject.build.version,
        at_ns=at_ns,
        gils=gils,
        threads=threads,
        deadlocks=deadlocks,
        left_out=len(tids[_MOST_THREADS:]),
    )


class _Looker:
    """Looks at threads of one process, more than once where need be."""

    def __init__(self, subject: Subject, owner_of: Callable[[int], int | None]) -> None:
        self._subject = subject
        self._known = subject.known(owner_of)

    def activities(self, tids: Iterable[int]) -> dict[int, ThreadActivity]:
        """Return what those of *tids* do that have not ended."""
        found = {}
        for tid in tids:
            # It may have ended, even while it was read.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
                found[tid] = read_activity(self._subject.pid, tid)
        return found

    def settled(
        self, activities: Mapping[int, ThreadActivity], looks: int
    ) -> dict[int, ThreadActivity]:
        """Return *activities*, after up to so many *looks* at those who sleep in no call."""
        now = dict(activities)
        for _ in range(looks):
            moving = [tid for tid, each in now.items() if not each.is_in_call]
            if not moving:
                break
            time.sleep(_PAUSE_S)
            now |= self.activities(moving)
        return now

    def threads(
        self, activities: Mapping[int, ThreadActivity], stacks: Iterable[ThreadStack]
    ) -> tuple[tuple[DumpedThread, ...], tuple[LockNow, ...]]:
        """Return the threads of *activities*, and the GILs behind that."""
        locks = tuple(self._subject.standing.locks())
        return dumped_threads(self._known, activities, tuple(stacks), locks), locks

    def confirmed(
        self, circles: Iterable[tuple[Step, ...]], threads: Iterable[DumpedThread]
    ) -> Iterator[tuple[Step, ...]]:
        """Yield those of *circles* that were there all the time.

        They were put together from reads at several times. Who has not run since then has slept on
        the same lock all the time, so its owner has not released it.
        """
        before = {each.tid: each for each in threads}
        for circle in circles:
            tids = [step.tid for step in circle]
            now, locks = self.threads(self.settled(self.activities(tids), _PATIENT_LOOKS), ())
            after = {each.tid: each for each in now}
            is_same = circle in deadlocks_of(now, dumped_gils(locks, now, {}))
            sleepers = [step.tid for step in circle if step.awaited is Awaited.LOCK]
            slices = [(before[tid].slices, after[tid].slices) for tid in sleepers if tid in after]
            if is_same and all(old == new is not None for old, new in slices):
                yield circle


def _owners_ahead(threads: Iterable[DumpedThread], locks: Iterable[LockNow]) -> set[int]:
    """Return who owns a lock that the holder of a GIL sleeps on, and sleeps in no call itself."""
    holders = {lock.holder_tid for lock in locks}
    awaited = {each.lock.owner_tid for each in threads if each.lock and each.tid in holders}
    return {each.tid for each in threads if each.tid in awaited and each.call is None}


@contextlib.contextmanager
def _owners(subject: Subject) -> Iterator[Callable[[int], int | None]]:
    """Give what tells who owns the mutex at an address, as the agent sees tids."""
    tids = subject.standing.tids_by_own_id()
    try:
        memory = MutexMemory(subject.pid)
    except OSError:
        yield lambda _: None  # not permitted, or a kernel without pagemap: no owner is known
        return
    with memory:

        def owner_of(address: int) -> int | None:
            owner = subject.reads(lambda: memory.owner(address))
            return None if owner is None else tids.get(owner)

        yield owner_of
