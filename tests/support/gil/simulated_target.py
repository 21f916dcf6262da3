"""A process whose load is known, and the agent beside it, for tests of what decides on windows.

The clock is a number, and nothing is random but what `Random` draws: the same every time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, cycle
from random import Random

from gilscope.budget.governor import Governor, Grant, Usage

__all__ = [
    "EMULATED_PAIR_NS",
    "MS",
    "STEPPED_PAIR_NS",
    "Agent",
    "Load",
    "S",
    "SeenWindow",
    "Simulation",
    "by_chance",
]

S = 1_000_000_000
MS = 1_000_000

EMULATED_PAIR_NS = 1250.0
"""An acquisition and a release, where the kernel emulates both calls."""
STEPPED_PAIR_NS = 50_000.0


@dataclass(frozen=True, slots=True)
class Load:
    """What a process does if nobody disturbs it; all of it holds the GIL."""

    cores: float
    pairs: float
    """Acquisitions and releases for each second of its own CPU time."""
    pair_ns: float = EMULATED_PAIR_NS
    contention_share: float = 0.0
    """Cost of the contention probes by its own CPU time."""

    def rates(self, *, is_full: bool) -> tuple[float, float]:
        """Return its own CPU time and the cost of full mode for each ns that passes."""
        price = self.pairs * self.pair_ns / S if is_full else 0.0
        own = min(self.cores, 1 / (1 + self.contention_share + price))
        return own, own * price


@dataclass(slots=True)
class SeenWindow:
    """A window that was open."""

    from_ns: int
    until_ns: int
    has_used_up: bool = False


@dataclass(frozen=True, slots=True)
class Agent:
    """How the agent behaves."""

    tick_ns: tuple[int, int] = (50 * MS, 250 * MS)
    """Between two questions, if none is due before."""
    late_ns: int = 2 * MS
    """The most it is late when one is due."""
    closing_ns: int = 45 * MS
    """How long the probes stay when a window has ended."""
    asleep: tuple[int, int] = (0, 0)
    """From when to when it is suspended."""


@dataclass(slots=True)
class Simulation:
    """A process under a governor. *loads* are (duration in ns, load), again and again."""

    governor: Governor
    loads: Sequence[tuple[int, Load]]
    random: Random
    agent: Agent = field(default_factory=Agent)

    now_ns: int = 0
    own_ns: float = 0.0
    contention_ns: float = 0.0
    full_ns: float = 0.0
    grant: Grant | None = None
    windows: list[SeenWindow] = field(default_factory=list)
    trace: list[tuple[int, float, float]] = field(default_factory=lambda: [(0, 0.0, 0.0)])
    """(time, own CPU time, cost) wherever the rates may change."""

    _limit_ns: float = 0.0
    _probes_until_ns: int = 0
    _ends: list[int] = field(default_factory=list)

    def run(self, seconds: float) -> "Simulation":
        """Go on for so long."""
        self._ends = list(accumulate(duration for duration, _ in self.loads))
        end_ns = self.now_ns + int(seconds * S)
        self._ask()
        while self.now_ns < end_ns:
            due_ns = max(self.now_ns, self.governor.due_ns) + self.random.randint(
                0, self.agent.late_ns
            )
            tick_ns = self.now_ns + self.random.randint(*self.agent.tick_ns)
            if self._pass_until(self._when_awake(min(due_ns, tick_ns))):
                # The probes have ended the window and wake the agent.
                woken_ns = self.now_ns + self.random.randint(0, self.agent.late_ns)
                self._pass_until(self._when_awake(woken_ns))
            self._ask()
        return self

    @property
    def cost_ns(self) -> float:
        """Cost of all traps."""
        return self.contention_ns + self.full_ns

    @property
    def usage(self) -> Usage:
        """What the governor sees."""
        return Usage(
            at_ns=self.now_ns,
            cpu_ns=int(self.own_ns + self.cost_ns),
            cost_ns=int(self.cost_ns),
            window_cost_ns=int(self.full_ns),
        )

    def coverage(self, since_ns: int = 0) -> float:
        """Return the part of the time since then that windows have covered."""
        covered_ns = sum(
            max(0, window.until_ns - max(since_ns, window.from_ns)) for window in self.windows
        )
        return covered_ns / (self.now_ns - since_ns)

    def parts_of(self, load: Load) -> tuple[float, float]:
        """Return the part of all time, and of the time in windows, that *load* has taken."""
        there_ns = self._time_of(load, 0, self.now_ns)
        met_ns = sum(self._time_of(load, each.from_ns, each.until_ns) for each in self.windows)
        return there_ns / self.now_ns, met_ns / (self.coverage() * self.now_ns)

    def excess_ns(self, share: float, least_cores: float, stretch_ns: int, since_ns: int) -> float:
        """Return the most by which the cost of a stretch exceeded the share of its CPU time."""
        # Both are piecewise linear, so that the worst stretch begins or ends at a corner.
        corners = [at_ns for at_ns, _, _ in self.trace]
        begins = {at_ns for at_ns in corners if since_ns <= at_ns <= self.now_ns - stretch_ns}
        begins |= {at_ns - stretch_ns for at_ns in corners if at_ns - stretch_ns >= since_ns}
        most_ns = 0.0
        for begin_ns in begins:
            own_before_ns, cost_before_ns = self._sums_at(begin_ns)
            own_ns, cost_ns = self._sums_at(begin_ns + stretch_ns)
            base_ns = max(own_ns - own_before_ns, least_cores * stretch_ns)
            most_ns = max(most_ns, cost_ns - cost_before_ns - share * base_ns)
        return most_ns

    def _load_at(self, at_ns: int) -> tuple[Load, int]:
        """Return the load at that time, and when it ends."""
        cycles, within_ns = divmod(at_ns, self._ends[-1])
        index = bisect_right(self._ends, within_ns)
        return self.loads[index][1], cycles * self._ends[-1] + self._ends[index]

    def _time_of(self, load: Load, from_ns: int, until_ns: int) -> int:
        there_ns = 0
        while from_ns < until_ns:
            current, end_ns = self._load_at(from_ns)
            end_ns = min(end_ns, until_ns)
            there_ns += end_ns - from_ns if current is load else 0
            from_ns = end_ns
        return there_ns

    def _sums_at(self, at_ns: int) -> tuple[float, float]:
        index = bisect_left(self.trace, (at_ns, 0.0, 0.0))
        after_ns, own_after_ns, cost_after_ns = self.trace[index]
        if after_ns == at_ns:
            return own_after_ns, cost_after_ns
        before_ns, own_ns, cost_ns = self.trace[index - 1]
        part = (at_ns - before_ns) / (after_ns - before_ns)
        return own_ns + part * (own_after_ns - own_ns), cost_ns + part * (cost_after_ns - cost_ns)

    def _when_awake(self, at_ns: int) -> int:
        from_ns, until_ns = self.agent.asleep
        return until_ns if from_ns <= at_ns < until_ns else at_ns

    @property
    def _is_counting(self) -> bool:
        return self.grant is not None and not self.windows[-1].has_used_up

    def _pass_until(self, until_ns: int) -> bool:
        """Let time pass; stop early and return True where a window uses up its allowance."""
        while self.now_ns < until_ns:
            load, stop_ns = self._load_at(self.now_ns)
            stop_ns = min(stop_ns, until_ns)
            is_full = self.grant is not None or self.now_ns < self._probes_until_ns
            if is_full and self.grant is None:
                stop_ns = min(stop_ns, self._probes_until_ns)
            own, full = load.rates(is_full=is_full)
            uses_up = False
            if self._is_counting and full > 0:
                used_up_ns = self.now_ns + int((self._limit_ns - self.full_ns) / full) + 1
                uses_up = used_up_ns <= stop_ns
                stop_ns = min(stop_ns, used_up_ns)
            elapsed_ns = stop_ns - self.now_ns
            self.now_ns = stop_ns
            self.own_ns += own * elapsed_ns
            self.full_ns += full * elapsed_ns
            self.contention_ns += own * load.contention_share * elapsed_ns
            self.trace.append((self.now_ns, self.own_ns, self.cost_ns))
            if self._is_counting:
                self.windows[-1].until_ns = self.now_ns
                self.windows[-1].has_used_up = uses_up
            if uses_up:
                return True
        return False

    def _ask(self) -> None:
        if not self._is_counting:
            self._close()
        grant = self.governor.step(self.usage, is_open=self.grant is not None)
        if grant is None:
            self._close()
            return
        assert grant.allowance_ns > 0
        if self.grant is None:
            self.windows.append(SeenWindow(self.now_ns, self.now_ns))
        self.grant = grant
        self._limit_ns = self.full_ns + grant.allowance_ns

    def _close(self) -> None:
        if self.grant is not None:
            self.grant = None
            self._probes_until_ns = self.now_ns + self.agent.closing_ns


def by_chance(
    random: Random, states: Iterable[tuple[float, Load]], seconds: float
) -> list[tuple[int, Load]]:
    """Return *states*, (mean duration in s, load), in turn, each for a time drawn at random."""
    drawn = list[tuple[int, Load]]()
    left_ns = int(seconds * S)
    for mean_s, load in cycle(states):
        if left_ns <= 0:
            break
        duration_ns = 1 + int(random.expovariate(1 / mean_s) * S)
        drawn.append((duration_ns, load))
        left_ns -= duration_ns
    return drawn
