"""Full mode in one process: the probes at the acquire and release sites, and when holds count."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gilscope.bpf.map import Table
from gilscope.bpf.map_entry import Change
from gilscope.bpf.uprobes.hooks import Hook, Uprobes
from gilscope.gil.totals.raw import Holding, RawLock
from gilscope.model.gil import Record

__all__ = ["NEVER_OPEN", "Coverage", "LockReader", "Window", "WindowKernel", "WindowSites"]

_NEVER_NS = (1 << 64) - 1
_UNLIMITED = (1 << 64) - 1


class Coverage(NamedTuple):
    """How much of the time windows have covered, as far as can be told without the kernel."""

    covered_ns: int
    """By windows that are over."""
    open_since_ns: int
    """CLOCK_MONOTONIC; 2**64 - 1: no window is open."""


NEVER_OPEN = Coverage(0, _NEVER_NS)


class LockReader(Protocol):
    """Samples the locks themselves, in the memory of their process."""

    def is_locked(self, cond: int) -> bool | None:
        """Return whether the lock is held now; None where it cannot be read."""

    def holder_tid(self, cond: int) -> int | None:
        """Return the thread that holds the lock, or held it last; None if it cannot be told."""


@dataclass(frozen=True, slots=True)
class WindowKernel:
    """What a window needs of the kernel."""

    windows: Table
    locks: Table
    uprobes: Uprobes


@dataclass(frozen=True, slots=True)
class WindowSites:
    """Where holds are seen to begin and to end, and what that does to them."""

    acquires: Sequence[Hook]
    releases: Sequence[Hook]
    inside_hold_ns: int
    """So much longer a hold becomes by the traps at its ends."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    """From when to when holds count, and until when they would if nothing came between."""

    from_ns: int
    until_ns: int

    def part_ns(self, since_ns: int, now_ns: int) -> int:
        """Return how much of the time from *since_ns* to *now_ns* lies inside."""
        return max(0, min(now_ns, self.until_ns) - max(since_ns, self.from_ns))


@dataclass(frozen=True, slots=True)
class _Holder:
    """Who holds a lock that was held when the window began."""

    tid: int | None
    part_ns: int | None
    """How much of that is certain; None: all until now."""


class Window:
    """When holds of one process count.

    A hold counts if it begins inside a window, and is followed to its end, which may come after
    the window: so the durations that are counted are whole, and no length is preferred. Held time
    counts inside windows only, that of a hold included which was going on when the window began.

    What the probes cannot know is added here: a hold that was there before a window and outlasts
    it, and the first part of one that goes on from one window into the next.
    """

    def __init__(
        self, pid: int, slot: int, kernel: WindowKernel, sites: WindowSites, reader: LockReader
    ) -> None:
        """Control *slot* for process *pid*, whose locks *reader* samples at."""
        self._pid = pid
        self._slot = slot
        self._kernel = kernel
        self._sites = sites
        self._reader = reader
        key = {"value": slot}
        self._traps = kernel.locks.entry(key, "traps")
        self._unknown_takes = kernel.locks.entry(key, "unknown_takes")
        self._until = kernel.windows.entry(key, "until_ns")
        self._other_slots: dict[int, int] = {}
        self._acquire_probes: list[int] = []
        self._release_probes: list[int] = []
        self._closing: list[Future[None]] = []
        self._bounds = _Bounds(_NEVER_NS, 0)
        self._is_open = False
        self._coverage = NEVER_OPEN
        self._tell_coverage: Callable[[Coverage], None] = _ignore
        self._stop_at_traps = 0
        self._traps_before = 0
        self._traps_per_ns = 0.0
        self._credits: dict[int, Counter[int | None]] = defaultdict(Counter)
        self._last_look: dict[int, _Holder] = {}
        self._write(counts_begun=False)

    @property
    def is_open(self) -> bool:
        """Whether a window has begun and has not been ended."""
        return self._is_open

    @property
    def can_open(self) -> bool:
        """Whether a window may begin: none is open and the last one's probes are out."""
        self._closing = [each for each in self._closing if not each.done()]
        return not (self._is_open or self._closing)

    @property
    def closes_unseen(self) -> bool:
        """Whether traps that come while probes are being taken out are not seen."""
        return not self._kernel.uprobes.has_links

    @property
    def traps_per_ns(self) -> float:
        """How many traps came in the last window, in the mean."""
        return self._traps_per_ns

    @property
    def is_lingering(self) -> bool:
        """Whether a hold that has outlasted its window is followed on."""
        return bool(self._release_probes) and not self._is_open

    @property
    def first_cond(self) -> int:
        """The address of the lock that was there first; 0: not known yet."""
        return int(self._lock(self._slot)["cond"])

    @property
    def has_used_up(self) -> bool:
        """Whether the window has ended by itself, having used up its traps."""
        return self._is_open and self._current_bounds().until_ns != _NEVER_NS

    @property
    def coverage(self) -> Coverage:
        """What windows have covered; one that has used up its traps is open until it is ended."""
        return self._coverage

    @property
    def other_slots(self) -> Mapping[int, int]:
        """The slots of the further locks of the process, by address of ``cond``."""
        return self._other_slots

    def add_lock(self, cond: int, slot: int) -> None:
        """Let the lock at *cond* be counted in *slot* from now on.

        The slot must say that the lock was released just now: what went on before was not seen.
        """
        self._other_slots[cond] = slot
        self._write(counts_begun=self._is_open)

    def tell_coverage(self, told: Callable[[Coverage], None]) -> None:
        """Call *told* with the `coverage` whenever a window has begun or ended."""
        self._tell_coverage = told

    def open(self, allowed_traps: int | None = None) -> None:
        """Begin a window, which ends by itself when *allowed_traps* have been used up.

        Raises what `Uprobes.open` raises.
        """
        if not self._release_probes:
            self._take_back_unseen()
            # Ends before beginnings: a hold whose end is not seen must not begin.
            self._release_probes = self._kernel.uprobes.open(
                self._pid, self._sites.releases, self._slot, is_window=True
            )
        self._acquire_probes = self._kernel.uprobes.open(
            self._pid, self._sites.acquires, self._slot, is_window=True
        )
        last, locks = self._bounds, dict(self._locks())
        self._traps_before = self.traps()
        self._stop_at_traps = (
            _UNLIMITED if allowed_traps is None else self._traps_before + allowed_traps
        )
        self._last_look.clear()
        begin = self._change(_Bounds(0, _NEVER_NS), "from_ns", counts_begun=True)
        # Nothing may come between: what is taken until the kernel knows of the window is missed.
        from_ns = time.monotonic_ns()
        begin.make(from_ns)
        self._bounds = _Bounds(from_ns, _NEVER_NS)
        self._is_open = True
        self._cover(Coverage(self._coverage.covered_ns, from_ns))
        for cond, before in locks.items():
            # A hold that began in the last window counts for its part there, too.
            now = self._lock(self._slot_of(cond))
            if before["held_since_ns"] and (
                now["held_since_ns"] == before["held_since_ns"]
                or now["released_ns"] >= self._bounds.from_ns
            ):
                part_ns = last.part_ns(before["held_since_ns"], _NEVER_NS)
                self._credits[cond][before["holder_tid"]] += part_ns

    def allow(self, traps: int) -> None:
        """Let the window that is open go on until `traps` has come to *traps*."""
        self._stop_at_traps = traps
        self._write(counts_begun=True)

    def end(self) -> None:
        """End the window and begin to take its probes out; a hold in flight is followed on."""
        if not self._is_open:
            return
        if self._was_cut_short():
            bounds = self._current_bounds()
            self._credit_unfinished(bounds)
            self._finish(bounds)
            self.settle()
            return
        # Looked at just before the end: whoever holds a lock then, untouched, has held it all the
        # time. If it is released before the end is written, the probes still count that.
        untouched = {cond: lock for cond, lock in self._locks() if self._is_untouched(lock)}
        holders = {cond: self._sample(cond) for cond in untouched}
        bounds = self._current_bounds()
        end = self._change(bounds, "until_ns", counts_begun=False)
        # As above: what is taken until the kernel knows of the end still counts.
        until_ns = min(bounds.until_ns, time.monotonic_ns())
        end.make(until_ns)
        covered_ns = self._finish(_Bounds(bounds.from_ns, until_ns))
        for cond, before in untouched.items():
            holder = holders[cond]
            if (
                holder is not None
                and self._lock(self._slot_of(cond))["held_ns"] == before["held_ns"]
            ):
                part_ns = covered_ns if holder.part_ns is None else holder.part_ns
                self._credits[cond][holder.tid] += part_ns
        self.settle()

    def give_up_lingering(self) -> None:
        """Follow no hold any more that has outlasted its window: its release is not probed now.

        The probes of windows have been taken out, because the agent was silent for too long.
        """
        if self._is_open or not self._release_probes:
            return
        self._credit_unfinished(self._bounds)
        self.settle()

    def settle(self) -> None:
        """Take the last probes out once the hold that has outlasted the window is over."""
        if self._is_open or not self._release_probes:
            return
        if any(lock["held_since_ns"] for _, lock in self._locks()):
            return
        self._closing += self._kernel.uprobes.close(self._release_probes)
        self._release_probes = []

    def close(self) -> list[Future[None]]:
        """End the window and take all probes out; return what says when they are."""
        self.end()
        self._closing += self._kernel.uprobes.close(self._release_probes)
        self._release_probes = []
        return self._closing

    def forget_thread(self, tid: int) -> None:
        """Let *tid* be another thread from now on; what it has held stays with the lock."""
        for credits_ns in self._credits.values():
            credits_ns[None] += credits_ns.pop(tid, 0)

    def traps(self) -> int:
        """Return how often the process has run into an acquire or release site so far."""
        return self._traps.read() or 0

    def unknown_takes(self) -> int:
        """Return how often a lock was taken that had no slot."""
        return self._unknown_takes.read() or 0

    def observed_ns(self, at_ns: int) -> int:
        """Return how much time windows have covered until *at_ns*."""
        if not self._is_open:
            return self._coverage.covered_ns
        bounds = self._current_bounds()
        return self._coverage.covered_ns + bounds.part_ns(bounds.from_ns, at_ns)

    def read(self, now_ns: int) -> dict[int, RawLock]:
        """Return what is known of every lock at *now_ns*, by address of ``cond``.

        To be read before the threads' records, which then hold what has ended meanwhile.
        """
        bounds = self._current_bounds()
        return {
            cond: RawLock(lock, self._holding(cond, lock, bounds, now_ns), self._credits[cond])
            for cond, lock in self._locks()
        }

    def _finish(self, bounds: _Bounds) -> int:
        """Take the window for ended at *bounds*; return how much time it has covered."""
        self._bounds = bounds
        self._is_open = False
        self._closing += self._kernel.uprobes.close(self._acquire_probes)
        self._acquire_probes = []
        covered_ns = bounds.until_ns - bounds.from_ns
        self._traps_per_ns = (self.traps() - self._traps_before) / max(1, covered_ns)
        self._cover(Coverage(self._coverage.covered_ns + covered_ns, _NEVER_NS))
        return covered_ns

    def _was_cut_short(self) -> bool:
        """Return whether somebody else has ended the window: the keeper, or an exec."""
        return self.has_used_up and self.traps() < self._stop_at_traps

    def _credit_unfinished(self, bounds: _Bounds) -> None:
        """Count what went on at the end of a window up to there, its probes being out.

        Of a hold that nobody has seen anything of, only what was seen when the lock was last read:
        who has the lock now need not have had it then.
        """
        for cond, lock in list(self._locks()):
            if lock["held_since_ns"]:
                part_ns = bounds.part_ns(lock["held_since_ns"], bounds.until_ns)
                part_ns = max(0, part_ns - self._sites.inside_hold_ns)
                self._credits[cond][lock["holder_tid"]] += part_ns
                ended = {**lock, "held_since_ns": 0, "released_ns": bounds.until_ns}
                self._kernel.locks.put({"value": self._slot_of(cond)}, ended)
            elif self._is_untouched(lock) and cond in self._last_look:
                seen = self._last_look[cond]
                self._credits[cond][seen.tid] += seen.part_ns or 0

    def _cover(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self._tell_coverage(coverage)

    def _holding(self, cond: int, lock: Record, bounds: _Bounds, now_ns: int) -> Holding | None:
        if lock["held_since_ns"]:
            part_ns = bounds.part_ns(lock["held_since_ns"], now_ns)
            part_ns = max(0, part_ns - self._sites.inside_hold_ns)
            return Holding(lock["holder_tid"], lock["held_since_ns"], part_ns)
        if not (self._is_open and self._is_untouched(lock)):
            return None
        holder = self._sample(cond)
        if holder is None:
            return None
        if holder.part_ns is None:
            part_ns = bounds.part_ns(bounds.from_ns, now_ns)
            self._last_look[cond] = _Holder(holder.tid, part_ns)
        return Holding(holder.tid, bounds.from_ns, self._last_look[cond].part_ns or 0)

    def _sample(self, cond: int) -> _Holder | None:
        """Return who holds a lock that was untouched a moment ago, and so has held it all along."""
        if self._reader.is_locked(cond):
            # Finding out who takes its time: a lock that was taken only now shows that by then.
            tid = self._reader.holder_tid(cond)
            is_the_old_hold = self._is_untouched(self._lock(self._slot_of(cond)))
            return _Holder(tid, None) if is_the_old_hold else self._last_look.get(cond)
        # It is being released, and the probes are about to say so; or the process has ended. What
        # was held until somebody looked is certain.
        return self._last_look.get(cond)

    def _take_back_unseen(self) -> None:
        # Without probes at its end, a hold that seems to go on has ended unseen.
        for cond, lock in self._locks():
            if lock["held_since_ns"]:
                key = {"value": self._slot_of(cond)}
                self._kernel.locks.put(key, {**lock, "held_since_ns": 0})

    def _is_untouched(self, lock: Record) -> bool:
        # Neither acquired nor released since the window began: it is held all the time, or free.
        return not lock["held_since_ns"] and lock["released_ns"] < self._bounds.from_ns

    def _current_bounds(self) -> _Bounds:
        if not self._is_open:
            return self._bounds
        # The probes end a window that has used up its traps; so does an exec.
        return _Bounds(self._bounds.from_ns, self._until.read() or 0)

    def _locks(self) -> Iterator[tuple[int, Record]]:
        first = self._lock(self._slot)
        if first["cond"]:
            yield first["cond"], first
        for cond, slot in self._other_slots.items():
            yield cond, self._lock(slot)

    def _slot_of(self, cond: int) -> int:
        return self._other_slots.get(cond, self._slot)

    def _lock(self, slot: int) -> Record:
        key = {"value": slot}
        while True:
            lock = self._kernel.locks.get(key)
            # The probes write a record while it is copied; a torn copy shows two versions.
            if lock is not None and lock["version_begin"] == lock["version_end"]:
                return lock

    def _write(self, *, counts_begun: bool) -> None:
        bounds = self._current_bounds()
        self._change(bounds, "from_ns", counts_begun=counts_begun).make(bounds.from_ns)

    def _change(self, bounds: _Bounds, name: str, *, counts_begun: bool) -> Change:
        """Return what tells the kernel of *bounds* once their field *name* is known."""
        return self._kernel.windows.change(
            {"value": self._slot},
            {
                "from_ns": bounds.from_ns,
                "until_ns": bounds.until_ns,
                "stop_at_traps": self._stop_at_traps,
                "inside_hold_ns": self._sites.inside_hold_ns,
                "counts_begun": int(counts_begun),
                "has_other_locks": int(bool(self._other_slots)),
            },
            name,
        )


def _ignore(_coverage: Coverage) -> None:
    pass
