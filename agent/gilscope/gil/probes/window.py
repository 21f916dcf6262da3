"""Full mode in one process: from when to when its holds count."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Final

from gilscope.bpf.map import Table
from gilscope.bpf.map_entry import Change
from gilscope.bpf.uprobes.hooks import Uprobes
from gilscope.gil.probes.coverage import NEVER_NS, NEVER_OPEN, Bounds, Coverage
from gilscope.gil.probes.hold_counts import HoldCounts
from gilscope.gil.probes.window_probes import WindowProbes, WindowSites
from gilscope.gil.probes.window_records import WindowRecords
from gilscope.gil.totals.raw import RawLock
from gilscope.runtimes.base import Locks
from gilscope.values import dataclass

__all__ = ["Window", "WindowKernel"]

_UNLIMITED: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class WindowKernel:
    """What a window needs of the kernel."""

    windows: Table
    locks: Table
    uprobes: Uprobes


class Window:
    """When holds of one process count.

    A hold counts if it begins inside a window, and is followed to its end, which may come after
    the window: so the durations that are counted are whole, and no length is preferred. Held time
    counts inside windows only, that of a hold included that was in flight when the window began.

    What the probes cannot know of that is added by `HoldCounts`.
    """

    def __init__(
        self, pid: int, slot: int, kernel: WindowKernel, sites: WindowSites, reader: Locks
    ) -> None:
        """Control *slot* for process *pid*, whose locks *reader* samples at."""
        self._records = WindowRecords(kernel.windows, kernel.locks, slot, sites.inside_hold_ns)
        self._probes = WindowProbes(pid, slot, kernel.uprobes, sites)
        self._counts = HoldCounts(self._records, reader, sites.inside_hold_ns)
        self._bounds = Bounds(NEVER_NS, 0)
        self._is_open = False
        self._coverage = NEVER_OPEN
        self._tell_coverage: Callable[[Coverage], None] = _ignore
        self._stop_at_traps = 0
        self._traps_before = 0
        self._traps_per_ns = 0.0
        self._write(counts_begun=False)

    @property
    def is_open(self) -> bool:
        """Whether a window has begun and has not been ended."""
        return self._is_open

    @property
    def can_open(self) -> bool:
        """Whether a window may begin: none is open and the last one's probes are out."""
        return not (self._is_open or self._probes.are_closing)

    @property
    def closes_unseen(self) -> bool:
        """Whether traps that come while probes are being taken out are not seen."""
        return self._probes.close_unseen

    @property
    def traps_per_ns(self) -> float:
        """How many traps came in the last window, in the mean."""
        return self._traps_per_ns

    @property
    def is_lingering(self) -> bool:
        """Whether a hold that has outlasted its window is followed on."""
        return self._probes.see_releases and not self._is_open

    @property
    def first_cond(self) -> int:
        """The address of the lock that was there first; 0: not known yet."""
        return self._records.first_cond

    @property
    def has_used_up(self) -> bool:
        """Whether the window has ended by itself, having used up its traps."""
        return self._is_open and self._current_bounds().until_ns != NEVER_NS

    @property
    def coverage(self) -> Coverage:
        """What windows have covered; one that has used up its traps is open until it is ended."""
        return self._coverage

    @property
    def other_slots(self) -> Mapping[int, int]:
        """The slots of the further locks of the process, by address of ``cond``."""
        return self._records.other_slots

    def add_lock(self, cond: int, slot: int) -> None:
        """Let the lock at *cond* be counted in *slot* from now on.

        The slot must say that the lock was released just now: what was before was not seen.
        """
        self._records.other_slots[cond] = slot
        self._write(counts_begun=self._is_open)

    def tell_coverage(self, told: Callable[[Coverage], None]) -> None:
        """Call *told* with the `coverage` whenever a window has begun or ended."""
        self._tell_coverage = told

    def open(self, allowed_traps: int | None = None) -> None:
        """Begin a window, which ends by itself when *allowed_traps* have been used up.

        Raises what `Uprobes.open` raises.
        """
        if not self._probes.see_releases:
            self._records.forget_holds()
        self._probes.open()
        last, locks = self._bounds, dict(self._records.locks())
        self._traps_before = self.traps()
        self._stop_at_traps = (
            _UNLIMITED if allowed_traps is None else self._traps_before + allowed_traps
        )
        begin = self._change(Bounds(0, NEVER_NS), "from_ns", counts_begun=True)
        # Nothing may come between: what is taken until the kernel knows of the window is missed.
        from_ns = time.monotonic_ns()
        begin.make(from_ns)
        self._bounds = Bounds(from_ns, NEVER_NS)
        self._is_open = True
        self._cover(Coverage(self._coverage.covered_ns, from_ns))
        self._counts.begin(locks, last, self._bounds)

    def allow(self, traps: int) -> None:
        """Let the window that is open continue until `traps` has come to *traps*."""
        self._stop_at_traps = traps
        self._write(counts_begun=True)

    def end(self) -> None:
        """End the window and begin to take its probes out; a hold in flight is followed on."""
        if not self._is_open:
            return
        if self._was_cut_short():
            bounds = self._current_bounds()
            self._counts.credit_unfinished(bounds)
            self._finish(bounds)
            self.settle()
            return
        # Sampled just before the end: whoever holds a lock then, untouched, has held it all the
        # time.
        untouched = self._counts.untouched(self._bounds)
        bounds = self._current_bounds()
        end = self._change(bounds, "until_ns", counts_begun=False)
        # As above: what is taken until the kernel knows of the end still counts.
        until_ns = min(bounds.until_ns, time.monotonic_ns())
        end.make(until_ns)
        covered_ns = self._finish(Bounds(bounds.from_ns, until_ns))
        self._counts.credit_untouched(untouched, covered_ns)
        self.settle()

    def give_up_lingering(self) -> None:
        """Follow no hold any more that has outlasted its window: its release is not probed now.

        The probes of windows have been taken out, because the agent was silent for too long.
        """
        if not self.is_lingering:
            return
        self._counts.credit_unfinished(self._bounds)
        self.settle()

    def settle(self) -> None:
        """Take the last probes out once the hold that has outlasted the window is over."""
        if not self.is_lingering:
            return
        if not any(lock["held_since_ns"] for _, lock in self._records.locks()):
            self._probes.close_releases()

    def close(self) -> list[Future[None]]:
        """End the window and take all probes out; return what says when they are."""
        self.end()
        return self._probes.close_releases()

    def forget_thread(self, tid: int) -> None:
        """Let *tid* be another thread from now on; what it has held stays with the lock."""
        self._counts.forget_thread(tid)

    def traps(self) -> int:
        """Return how often the process has run into an acquire or release site so far."""
        return self._records.traps()

    def unknown_takes(self) -> int:
        """Return how often a lock was taken that had no slot."""
        return self._records.unknown_takes()

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
        return self._counts.read(self._current_bounds(), now_ns, is_open=self._is_open)

    def _finish(self, bounds: Bounds) -> int:
        """Take the window for ended at *bounds*; return how much time it has covered."""
        self._bounds = bounds
        self._is_open = False
        self._probes.close_acquires()
        covered_ns = bounds.until_ns - bounds.from_ns
        self._traps_per_ns = (self.traps() - self._traps_before) / max(1, covered_ns)
        self._cover(Coverage(self._coverage.covered_ns + covered_ns, NEVER_NS))
        return covered_ns

    def _was_cut_short(self) -> bool:
        """Return whether somebody else has ended the window: the keeper, or an exec."""
        return self.has_used_up and self.traps() < self._stop_at_traps

    def _cover(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self._tell_coverage(coverage)

    def _current_bounds(self) -> Bounds:
        if not self._is_open:
            return self._bounds
        # The probes end a window that has used up its traps; so does an exec.
        return Bounds(self._bounds.from_ns, self._records.until_ns())

    def _write(self, *, counts_begun: bool) -> None:
        bounds = self._current_bounds()
        self._change(bounds, "from_ns", counts_begun=counts_begun).make(bounds.from_ns)

    def _change(self, bounds: Bounds, name: str, *, counts_begun: bool) -> Change:
        return self._records.change(
            bounds, name, stop_at_traps=self._stop_at_traps, counts_begun=counts_begun
        )


def _ignore(_coverage: Coverage) -> None:
    pass
