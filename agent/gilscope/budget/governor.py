"""Decides when full mode is on in one process, so that tracing keeps within a budget.

The budget fills a bucket and every trap empties it. A process whose full mode costs less than the
budget is in full mode all the time; any other one in windows, for which its bucket saves up.

**What is promised.** Whenever full mode costs something, the estimated cost of the last 20 s is
within the budget, and so is that of any longer time up to then. Two things can only be paid back
afterwards, before the next window: the first window, and that a process turns busy while a window
is being closed. What the contention probes cost above the budget is not made up for: they are
never off. A window that has used up what it was given is ended by the probes themselves, in
`probes/gil/holds.bpf.h`: whoever looked from outside would be late. Where 20 s do not bring in the
price of one short window, they become up to 2 minutes.

**Why windows tell the truth.** When the next window may open is drawn at random and by the clock
alone: half to one and a half times the mean pause, so that whatever repeats itself in the process
is hit at every phase, whatever its period. At that moment the bucket, which knows sums over
seconds only, decides whether it can pay. If not, the lot is drawn again; to open as soon as there
is enough would prefer the moments at which the process works. How long a window lasts is set when
it opens, from what windows have cost before, with a lot of its own.

Three decisions do depend on what a window sees. One that uses up its allowance ends early, and more
of those do that meet busy times, which are then seen for too short a time. (Events that come at
random keep their rate under any rule for stopping; those that come in bursts do not.) So the
allowance is well above what a window is expected to cost, and ends few but the first one that
meets a process turned busy. A window that was found to be cheap continues, which prefers quiet
times, but only after several cheap ones in a row. One that continues and turns costly gets an end
that lies as far off as the bucket reaches.

All that does no harm to what changes within a second or two. Of busy and quiet times that take
turns more slowly, windows cover a smaller part of the busy ones. So what windows have seen is to
be divided by the time that they have covered over a time in which the process does the same.
"""

from random import Random
from typing import Final

from gilscope.budget.pace import Pace
from gilscope.budget.token_bucket import STRETCH_NS, Budget, TokenBucket, Usage
from gilscope.budget.window_price import LEAST_NS, WindowPrice
from gilscope.values import dataclass

__all__ = ["Budget", "Governor", "Grant", "Usage"]


_S: Final = 1_000_000_000
_MS: Final = 1_000_000

_LONGEST_PAUSE_NS: Final = 12 * _S
"""From the end of a window to the next opportunity, on average, where there is hardly a chance:
many others share the room for windows, or the contention probes cost more than the budget."""
_JITTER: Final = (0.5, 1.5)
"""The pause by its mean. As wide as the mean, it makes all phases of such a period equally likely
in one step; shorter periods are hit evenly anyway, longer ones after some steps."""
_LONGEST_NS: Final = STRETCH_NS // 2
"""The longest one with an end: longer ones would be paid with what is too old to be spent."""
_PART_SPENT: Final = (0.4, 0.7)
"""What a window is planned to cost by what the bucket holds; the rest is there for surprises."""
_MARGIN: Final = 1.25
"""Allowance of the shortest window by its expected cost."""
_LEAST_ALLOWANCE_NS: Final = _MS
"""With less no window opens, however cheap it looks: the cost of some 800 holds."""

_FIRST_NS: Final = 20 * _MS
"""Length of the first window, whose price nobody knows. It is given on credit: to save up for the
worst would take a quarter of a minute and more, and the worst is rare."""

_LEARN_NS: Final = 2 * _S
"""How long a part of a window has to be to change its price, if it has not ended before."""
_LOOK_NS: Final = (_S // 4, 2 * _S)
"""How often a window that continues is checked: sooner where it uses its allowance faster."""
_JUDGED_AFTER_NS: Final = 60 * _S
"""How long the contention probes must be above the budget before that is said, or below it."""
_PART_USED: Final = 0.25
"""Of the allowance, that may be expected to be used until the next check."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave to have a window open."""

    allowance_ns: int
    """What full mode may cost from the usage that was stated on; then the window must end by
    itself, without waiting to be told."""
    until_ns: int | None
    """When it is to end, CLOCK_MONOTONIC; None: that is not known yet."""


class Governor:
    """Grants windows to one process. To be asked often; nothing goes wrong if that is late."""

    def __init__(self, budget: Budget, random: Random, pace: Pace) -> None:
        """Keep to *budget* and, with all other processes, to *pace*; *random* draws the lots."""
        self.processes_per_window = 1.0
        """How many processes share the room for one window. Without room, more of them make each
        ask the less often."""
        self._budget = budget
        self._random = random
        self._pace = pace
        self._bucket: TokenBucket | None = None
        self._price = WindowPrice()
        self._due_ns = 0
        self._least_ns = random.uniform(*LEAST_NS)
        self._window: _Window | None = None
        self._is_over_budget = False
        self._judged_ns = 0
        """When the contention probes' cost was last on that side of the budget."""
        self._ended: Usage | None = None

    @property
    def due_ns(self) -> int:
        """When it wants to be asked again at the latest, CLOCK_MONOTONIC."""
        return self._due_ns

    @property
    def is_endless(self) -> bool:
        """Whether a window is open that costs less than comes in, and has no end."""
        return self._window is not None and self._window.until_ns is None

    @property
    def is_over_budget(self) -> bool:
        """Whether the contention probes alone have cost more than the budget for a minute."""
        return self._is_over_budget

    def step(self, usage: Usage, *, is_open: bool) -> Grant | None:
        """Return the leave for the window that is open or is to be opened now; None: for none.

        *is_open* says whether the window that was granted last is still open: not so when it has
        used up its allowance, or could not be opened.
        """
        if self._bucket is None:
            self._bucket = TokenBucket(self._budget, usage)
            self._judged_ns = usage.at_ns
            self._draw_due(usage, _S)
            return None
        self._bucket.update(usage)
        self._judge(usage, self._bucket)
        if self._window is not None and not is_open:
            if usage.window_cost_ns > self._window.seen.window_cost_ns:
                self._price.learn(self._window.seen, usage, self._bucket.base_rate)
            self._close(usage)
        if self._window is not None:
            return self._go_on(usage, self._bucket, self._window)
        if usage.at_ns < self._due_ns:
            return None
        if is_open:  # it was told to close long ago
            self._draw_due(usage, self._pace.pause_ns)
            return None
        return self._open(usage, self._bucket)

    def begin_open(self, usage: Usage) -> Grant:
        """Return the leave for a window that is open from the very beginning, on credit.

        For what is to be seen all the time unless that turns out to cost too much. To be called
        instead of the first `step`, with a window that is being opened.
        """
        self._bucket = bucket = TokenBucket(self._budget, usage)
        self._judged_ns = usage.at_ns
        self._window = _Window(usage, None, credit_ns=_FIRST_NS)
        self._due_ns = usage.at_ns + _LOOK_NS[1]
        return Grant(int(bucket.held_ns) + _FIRST_NS, None)

    def postpone(self, usage: Usage) -> None:
        """Keep the books, and want no window before the next lot: there is no room for one.

        None must be open.
        """
        if self._bucket is None:
            self.step(usage, is_open=False)
            return
        self._bucket.update(usage)
        self._judge(usage, self._bucket)
        self._window = None
        mean_ns = int(self._pace.pause_ns * self.processes_per_window)
        self._draw_due(usage, min(mean_ns, _LONGEST_PAUSE_NS))

    def _judge(self, usage: Usage, bucket: TokenBucket) -> None:
        # Both ways only after a minute, so that what goes up and down is not told each time.
        if (bucket.earning < 0) == self._is_over_budget:
            self._judged_ns = usage.at_ns
        elif usage.at_ns - self._judged_ns >= _JUDGED_AFTER_NS:
            self._is_over_budget = not self._is_over_budget

    def _open(self, usage: Usage, bucket: TokenBucket) -> Grant | None:
        if self._ended is not None and self._price.is_known:
            self._price.learn_closing(self._ended, usage, bucket.base_rate)
            self._ended = None
        if self._price.is_known:
            need_ns = _MARGIN * self._price.rate(bucket.base_rate) * self._least_ns
            need_ns = max(need_ns, _LEAST_ALLOWANCE_NS) + self._reserve_ns(bucket)
            window = _Window(usage, self._end_ns(usage, bucket, self._least_ns))
        else:
            need_ns = 0.0  # not even that is there if the contention probes alone cost too much
            window = _Window(usage, usage.at_ns + _FIRST_NS, credit_ns=_FIRST_NS)
        bucket.save_for(need_ns)
        if bucket.held_ns < need_ns:
            is_hopeless = bucket.earning < 0
            self._draw_due(usage, _LONGEST_PAUSE_NS if is_hopeless else self._pace.pause_ns)
            return None
        self._least_ns = self._random.uniform(*LEAST_NS)
        self._window = window
        return self._grant(usage, bucket, window)

    def _go_on(self, usage: Usage, bucket: TokenBucket, window: "_Window") -> Grant | None:
        is_over = window.until_ns is not None and usage.at_ns >= window.until_ns
        if is_over or usage.at_ns >= window.seen.at_ns + _LEARN_NS:
            self._price.learn(window.seen, usage, bucket.base_rate)
            window.seen = usage
            window.credit_ns = 0
            if is_over or window.until_ns is None:
                window.until_ns = self._end_ns(usage, bucket, _LEARN_NS)
        if is_over and window.until_ns is not None:
            self._close(usage)
            return None
        return self._grant(usage, bucket, window)

    def _grant(self, usage: Usage, bucket: TokenBucket, window: "_Window") -> Grant | None:
        allowance_ns = int(bucket.held_ns + window.credit_ns - self._reserve_ns(bucket))
        if allowance_ns <= 0:
            self._close(usage)
            return None
        self._due_ns = usage.at_ns + self._look_again_in_ns(bucket, allowance_ns)
        if window.until_ns is not None:
            self._due_ns = min(self._due_ns, window.until_ns)
        return Grant(allowance_ns, window.until_ns)

    def _look_again_in_ns(self, bucket: TokenBucket, allowance_ns: int) -> int:
        # Income must renew the allowance before the window has used it up.
        soonest_ns, latest_ns = _LOOK_NS
        cost_ns = latest_ns * self._price.rate(bucket.base_rate)
        if cost_ns <= _PART_USED * allowance_ns:
            return latest_ns
        return max(soonest_ns, int(latest_ns * _PART_USED * allowance_ns / cost_ns))

    def _close(self, usage: Usage) -> None:
        self._window = None
        self._ended = usage
        self._draw_due(usage, self._pace.pause_ns)

    def _draw_due(self, usage: Usage, mean_ns: int) -> None:
        self._due_ns = usage.at_ns + int(mean_ns * self._random.uniform(*_JITTER))

    def _end_ns(self, usage: Usage, bucket: TokenBucket, least_ns: float) -> int | None:
        """Return when a window must end, be it open or not; None: it costs less than comes in."""
        loss = self._price.rate(bucket.base_rate) - bucket.earning
        if loss <= 0:
            return None
        part = self._random.uniform(*_PART_SPENT)
        reserve_ns = self._reserve_ns(bucket)
        length_ns = min(_LONGEST_NS, (part * bucket.held_ns - reserve_ns) / loss)
        # Meanwhile some of what is held gets too old.
        length_ns = min(length_ns, (part * bucket.held_after(length_ns) - reserve_ns) / loss)
        return usage.at_ns + int(max(least_ns, length_ns))

    def _reserve_ns(self, bucket: TokenBucket) -> float:
        return self._price.closing_cost_ns(bucket.base_rate)


@dataclass(slots=True)
class _Window:
    """A window that was granted."""

    seen: Usage
    """What it has cost up to here is known."""
    until_ns: int | None
    credit_ns: int = 0
