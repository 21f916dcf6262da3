"""When one process is observed: all the time, or in windows."""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

from gilscope.bpf.map import Table
from gilscope.bpf.uprobes.hooks import Hook, Uprobes
from gilscope.values import Record, dataclass

__all__ = ["ProbeWindow", "TrapPrices", "WindowKernel"]

_NEVER_NS = (1 << 64) - 1
_UNLIMITED = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class WindowKernel:
    """What a window needs of the kernel."""

    targets: Table
    """With the bounds of its window among the rest of what the probes know of a process, by pid."""
    totals: Table
    """With ``cost_ns``, ``traps`` and ``ended_ns`` of a process, by pid."""
    uprobes: Uprobes


@dataclass(frozen=True, slots=True)
class TrapPrices:
    """What a trap costs a process now."""

    trap_ns: int
    """Where the kernel emulates the instruction."""
    stepped_trap_ns: int
    """Where it has to single-step."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    from_ns: int = _NEVER_NS
    until_ns: int = 0
    stop_at_cost_ns: int = _UNLIMITED
    is_whole: bool = False


class ProbeWindow:
    """The probes of one process, and from when to when what they see counts.

    Between windows the process has no probes. What a window counts has begun and ended in it.
    """

    def __init__(
        self,
        pid: int,
        hooks: Sequence[Hook],
        kernel: WindowKernel,
        terms: Record,
    ) -> None:
        """Put *hooks* into *pid* while open; *terms* are what else the probes know of it."""
        self._pid = pid
        self._hooks = tuple(hooks)
        self._kernel = kernel
        self._terms = terms
        key = {"value": pid}
        self._cost = kernel.totals.entry(key, "cost_ns")
        self._traps = kernel.totals.entry(key, "traps")
        self._ended = kernel.totals.entry(key, "ended_ns")
        self._until = kernel.targets.entry(key, "until_ns")
        self._prices = TrapPrices(0, 0)
        self._bounds = _Bounds()
        self._probes: list[int] = []
        self._closing: list[Future[None]] = []
        self._covered_ns = 0
        self._unseen_since_ns = 0
        self._unseen_until_ns = 0
        self._is_open = False
        self._kernel.targets.put(key, self._record())

    @property
    def is_open(self) -> bool:
        """Whether it has begun and has not been ended."""
        return self._is_open

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """What the process has while it is open."""
        return self._hooks

    @property
    def is_whole(self) -> bool:
        """Whether the process is observed all the time."""
        return self._bounds.is_whole

    @property
    def can_open(self) -> bool:
        """Whether it may begin: it is not open, and the last one's probes are out."""
        return not (self._is_open or self.is_closing)

    @property
    def is_closing(self) -> bool:
        """Whether probes are being taken out."""
        self._closing = [each for each in self._closing if not each.done()]
        return bool(self._closing)

    @property
    def has_used_up(self) -> bool:
        """Whether it has ended by itself, having cost all that it was allowed to.

        Or the keeper has ended it, because the agent was silent for too long.
        """
        return self._is_open and self._until_ns(_NEVER_NS) < _NEVER_NS

    def open_for_good(self, prices: TrapPrices) -> None:
        """Observe the process all the time from now on.

        Raises what `Uprobes.open` raises, or ProcessLookupError where the program has gone.
        """
        # Known before the first probe is there, so that nothing that one sees is wasted.
        self._prices = prices
        self._tell(_Bounds(time.monotonic_ns(), _NEVER_NS, is_whole=True))
        self._probes = self._kernel.uprobes.open(self._pid, self._hooks, 0)
        self._is_open = True

    def open(self, prices: TrapPrices, allowance_ns: int) -> None:
        """Begin a window that ends by itself when it has cost *allowance_ns*.

        Raises as `open_for_good` does.
        """
        self._prices = prices
        # The keeper finds what to end by the cookie: it is the key of the entry.
        probes = self._kernel.uprobes.open(self._pid, self._hooks, self._pid, is_window=True)
        try:
            # Only now: what runs into the first probe while others are missing does not count.
            self._tell(_Bounds(time.monotonic_ns(), _NEVER_NS, self.cost_ns() + allowance_ns))
        except BaseException:
            self._closing += self._kernel.uprobes.close(probes)
            raise
        self._probes = probes
        self._is_open = True

    def allow(self, prices: TrapPrices, allowance_ns: int) -> None:
        """Let the window that is open continue until it has cost another *allowance_ns*.

        Raises ProcessLookupError where the program has gone.
        """
        self._prices = prices
        self._tell(replace(self._bounds, stop_at_cost_ns=self.cost_ns() + allowance_ns))

    def end(self) -> None:
        """End the window, and begin to take its probes out."""
        if not self._is_open:
            return
        self._is_open = False
        bounds = self._bounds
        self._bounds = replace(bounds, until_ns=self._until_ns(time.monotonic_ns()))
        # Of a program that has gone there is nothing to be told.
        self._kernel.targets.replace({"value": self._pid}, self._record())
        self._covered_ns += self._bounds.until_ns - bounds.from_ns
        self._closing += self._taken_out()

    def close(self) -> list[Future[None]]:
        """End the window for good; return what says when its probes are out."""
        self.end()
        return self._closing

    def observed_ns(self, at_ns: int) -> int:
        """Return how much time windows have covered until *at_ns*, CLOCK_MONOTONIC."""
        if not self._is_open:
            return self._covered_ns
        return self._covered_ns + max(0, self._until_ns(at_ns) - self._bounds.from_ns)

    def take_unseen_ns(self) -> int:
        """Return for how long since the last call there may have been traps that were not seen.

        A perf event stops its program at once, but takes up to a second to take the breakpoint out.
        """
        if self._kernel.uprobes.has_links or not self._unseen_since_ns:
            return 0
        is_closing = self.is_closing
        until_ns = time.monotonic_ns() if is_closing else self._unseen_until_ns
        unseen_ns = max(0, until_ns - self._unseen_since_ns)
        self._unseen_since_ns = until_ns if is_closing else 0
        return unseen_ns

    def cost_ns(self) -> int:
        """Return what all traps have cost so far, those outside of windows included."""
        return self._cost.read() or 0

    def traps(self) -> int:
        """Return how often the process has run into a probe so far."""
        return self._traps.read() or 0

    def _taken_out(self) -> list[Future[None]]:
        self._unseen_since_ns = time.monotonic_ns()
        closing = self._kernel.uprobes.close(self._probes)
        self._probes = []
        for each in closing:
            each.add_done_callback(self._note_out)
        return closing

    def _note_out(self, _closed: Future[None]) -> None:
        self._unseen_until_ns = time.monotonic_ns()

    def _until_ns(self, at_ns: int) -> int:
        ended_ns = self._ended.read() or 0
        if ended_ns >= self._bounds.from_ns:
            at_ns = min(at_ns, ended_ns)
        # None where the program has gone.
        return min(at_ns, self._until.read() or _NEVER_NS)

    def _tell(self, bounds: _Bounds) -> None:
        last, self._bounds = self._bounds, bounds
        # An exec has the kernel remove the entry: it is not to come back for another program.
        if not self._kernel.targets.replace({"value": self._pid}, self._record()):
            self._bounds = last
            raise ProcessLookupError(f"process {self._pid} runs another program")

    def _record(self) -> Record:
        bounds, prices = self._bounds, self._prices
        return {
            **self._terms,
            "is_whole": int(bounds.is_whole),
            "trap_ns": prices.trap_ns,
            "stepped_trap_ns": prices.stepped_trap_ns,
            "from_ns": bounds.from_ns,
            "until_ns": bounds.until_ns,
            "stop_at_cost_ns": bounds.stop_at_cost_ns,
        }
