"""Keeps the books of what tracing one process may cost: income, cost, and what may be spent."""

from typing import Final

from gilscope.values import dataclass

__all__ = ["STRETCH_NS", "Budget", "TokenBucket", "Usage"]

_S: Final = 1_000_000_000

STRETCH_NS: Final = 20 * _S
"""Over which the budget is kept. What was earned before it cannot be spent any more, so that an
idle night buys no burst; and it brings in three windows even in the busiest process."""
_LONGEST_STRETCH_NS: Final = 120 * _S
_SAVED_OVER_NEED: Final = 1.2
"""Income of a stretch over the costliest thing that it has to pay for."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one process has used so far. Only differences matter, and no number runs back."""

    at_ns: int
    """When this was read, CLOCK_MONOTONIC."""
    cpu_ns: int
    """CPU time of the process, what tracing costs it included."""
    cost_ns: int
    """Estimated cost of all traps, those of the contention probes included."""
    window_cost_ns: int
    """The part that the probes of full mode have caused, after the end of windows too."""
    walking_ns: int = 0
    """The part that stacks have cost."""

    @property
    def own_ns(self) -> int:
        """CPU time that the process has used itself."""
        return self.cpu_ns - self.cost_ns

    @property
    def contention_ns(self) -> int:
        """The part of the cost that the contention probes have caused, stacks included."""
        return self.cost_ns - self.window_cost_ns

    @property
    def waits_ns(self) -> int:
        """The same without stacks: what the traps of waits have cost."""
        return self.contention_ns - self.walking_ns


@dataclass(frozen=True, slots=True)
class Budget:
    """What tracing may cost one process."""

    share: float
    """Of the CPU time that the process uses itself: 0.01 is 1 %."""
    least_cores: float = 0.1
    """A process that uses less than this part of one core is granted as if it used as much. It can
    then be watched nearly always, which still costs next to nothing."""

    def granted_ns(self, before: Usage, usage: Usage) -> float:
        """Return what tracing may have cost from *before* to *usage*."""
        least_ns = self.least_cores * (usage.at_ns - before.at_ns)
        return self.share * max(usage.own_ns - before.own_ns, least_ns)


@dataclass(slots=True)
class _Moment:
    """The sums of a bucket at some moment."""

    at_ns: int
    own_ns: int
    """CPU time that the process has used itself."""
    contention_ns: int
    """Cost of the contention probes."""
    base_ns: float = 0.0
    """CPU time of which a share was granted."""
    peak_ns: float = 0.0
    """The highest balance from here up to the next moment that is kept."""


class TokenBucket:
    """Income less cost, of which only what was earned in the last stretch may be spent.

    Its balance is all income less all cost. It holds what the balance exceeds the highest one by
    that there was until a stretch ago. So whenever something is spent that was held, the cost of
    the stretch up to then, and of any longer one, is at most its income; and no debt is forgotten.

    Its moments are not `series.sliding_totals`: each has the highest balance up to the next one,
    which still rises while it is the last, and one that becomes too old is not dropped but raises
    the mark. The stretch that they reach back changes, too.
    """

    def __init__(self, budget: Budget, usage: Usage) -> None:
        """Begin with nothing at *usage*."""
        self._budget = budget
        self._stretch_ns: float = STRETCH_NS
        self._now = _Moment(usage.at_ns, usage.own_ns, usage.contention_ns)
        self._start = self._now
        """The latest moment that is a stretch old; the first one while there is none."""
        # A list, for an empty deque has room for 64, and a thousand processes have one each.
        self._recent = [self._now]
        self._spent_before_ns: float = usage.cost_ns
        """Cost that does not count."""
        self._balance_ns = 0.0
        self._mark_ns = 0.0
        """The highest balance until a stretch ago."""

    @property
    def held_ns(self) -> float:
        """What may be spent; negative: a debt, or more was spent lately than has come in."""
        return self._balance_ns - self._mark_ns

    @property
    def base_rate(self) -> float:
        """CPU time of which a share is granted, in cores, lately. Positive."""
        return max(1e-6, (self._now.base_ns - self._start.base_ns) / self._lately_ns)

    @property
    def earning(self) -> float:
        """Income less the cost of the contention probes, in ns per ns, lately."""
        contention_ns = self._now.contention_ns - self._start.contention_ns
        return self._budget.share * self.base_rate - contention_ns / self._lately_ns

    def held_after(self, elapsed_ns: float) -> float:
        """Return what would be held in *elapsed_ns* if nothing came in or was spent until then."""
        until_ns = self._now.at_ns + elapsed_ns - self._stretch_ns
        old = [moment.peak_ns for moment in self._recent if moment.at_ns <= until_ns]
        return self._balance_ns - max([self._mark_ns, *old])

    def save_for(self, need_ns: float) -> None:
        """Let the bucket hold *need_ns*, if a stretch that is not all too long brings that in."""
        if self.earning > 0:
            wanted_ns = min(_SAVED_OVER_NEED * need_ns / self.earning, _LONGEST_STRETCH_NS)
            self._stretch_ns = max(STRETCH_NS, wanted_ns)

    def update(self, usage: Usage) -> None:
        """Take in what has come in and was spent."""
        last = self._now
        base_ns = self._base_ns(usage.at_ns, usage.own_ns)
        self._now = _Moment(usage.at_ns, usage.own_ns, usage.contention_ns, base_ns)
        self._balance_ns = self._budget.share * self._now.base_ns - (
            usage.cost_ns - self._spent_before_ns
        )
        self._write_off(last)
        # The balance at the end of a moment is in its peak too. So what came in while nobody looked
        # for longer than a stretch is never held: there is no saying when it did.
        self._recent[-1].peak_ns = max(self._recent[-1].peak_ns, self._balance_ns)
        if usage.at_ns >= self._recent[-1].at_ns + _S:
            self._now.peak_ns = self._balance_ns
            self._recent.append(self._now)
        while len(self._recent) > 1 and self._recent[0].at_ns <= usage.at_ns - self._stretch_ns:
            self._start = self._recent.pop(0)
            self._mark_ns = max(self._mark_ns, self._start.peak_ns)

    @property
    def _lately_ns(self) -> int:
        return max(1, self._now.at_ns - self._start.at_ns)

    def _base_ns(self, at_ns: int, own_ns: int) -> float:
        # The least is granted for whole seconds, so that a process that works by fits and starts
        # is not granted it on top of what it uses.
        since = self._recent[-1]
        least_ns = self._budget.least_cores * (at_ns - since.at_ns)
        return max(self._now.base_ns, since.base_ns + max(own_ns - since.own_ns, least_ns))

    def _write_off(self, last: _Moment) -> None:
        # Nobody can switch the contention probes off. When they take more than comes in, windows
        # wait until that is over and about a stretch more, not for as long as it has gone on.
        earned_ns = self._budget.share * (self._now.base_ns - last.base_ns)
        earned_ns -= self._now.contention_ns - last.contention_ns
        most_owed_ns = self._budget.share * (self._now.base_ns - self._start.base_ns)
        if earned_ns < 0 and self.held_ns < -most_owed_ns:
            written_off_ns = min(-earned_ns, -most_owed_ns - self.held_ns)
            self._spent_before_ns += written_off_ns
            self._balance_ns += written_off_ns
