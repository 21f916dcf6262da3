"""What a window costs a process, learned from the windows before it."""

from typing import Final

from gilscope.budget.token_bucket import Usage

__all__ = ["CLOSING_NS", "LEAST_NS", "WindowPrice"]


_MS: Final = 1_000_000

LEAST_NS: Final = (20 * _MS, 60 * _MS)
"""The shortest length that a window is planned with. The probes take 40 ms to come out: a shorter
one would pay for little else."""

CLOSING_NS: Final = 50 * _MS
"""How long traps may continue after the end of a window."""

_FALL: Final = 6
"""One part in so many of what a price was too high by is taken off it by each window."""


class WindowPrice:
    """What a window costs, in ns of cost per ns of time.

    It rises at once and falls slowly: the windows of a process that is busy now and then have to
    be short enough to be paid whole when they meet a busy time, or they would see too few of them.
    One that has become quiet for good is believed after a minute or two.
    """

    def __init__(self) -> None:
        self._rate: float | None = None
        self._base_rate = 1.0
        self._last_rate = 0.0
        self._closing_ns: float = CLOSING_NS

    @property
    def is_known(self) -> bool:
        """Whether any window has been seen."""
        return self._rate is not None

    def rate(self, base_rate: float) -> float:
        """Return what is expected of a process that uses CPU time at *base_rate*."""
        if self._rate is None:
            return 0.0
        # With a tenth of the CPU time it does about a tenth of the work.
        return self._rate * min(1.0, base_rate / self._base_rate)

    def closing_cost_ns(self, base_rate: float) -> float:
        """Return what must be kept for the traps that follow the end of a window."""
        return self.rate(base_rate) * self._closing_ns

    def learn(self, since: Usage, until: Usage, base_rate: float) -> None:
        """Note what a part of a window has cost."""
        elapsed_ns = until.at_ns - since.at_ns
        if elapsed_ns <= 0:
            return
        self._last_rate = (until.window_cost_ns - since.window_cost_ns) / elapsed_ns
        # That a few milliseconds were quiet says nothing.
        self._note(self._last_rate, base_rate, may_fall=elapsed_ns >= LEAST_NS[0])

    def learn_closing(self, ended: Usage, now: Usage, base_rate: float) -> None:
        """Note what the traps have cost that followed the end of a window."""
        cost_ns = now.window_cost_ns - ended.window_cost_ns
        # The process may have turned busy only just before the end.
        self._note(cost_ns / CLOSING_NS, base_rate, may_fall=False)
        rate = max(self._last_rate, cost_ns / CLOSING_NS)
        if rate > 0:
            self._closing_ns = max(cost_ns / rate, (cost_ns / rate + self._closing_ns) / 2)

    def _note(self, rate: float, base_rate: float, *, may_fall: bool) -> None:
        expected = self.rate(base_rate)
        if rate < expected:
            rate = expected + (rate - expected) / _FALL if may_fall else expected
        self._rate, self._base_rate = rate, base_rate
