"""Out of how many acquires waits were: without that, nobody can tell whether they are many."""

from gilscope.model.gil import ProcessTotals
from gilscope.values import dataclass
from gilscope.verdict.estimates import is_held_estimated

__all__ = ["BaseRate", "base_rate"]

_LEAST_HOLDS = 100
"""In windows that cover a part of the time: fewer say little about the rest."""


@dataclass(frozen=True, slots=True)
class BaseRate:
    """How often the GIL was acquired, and how often that took a wait."""

    waits: int
    """Finished ones: each is followed by an acquire."""
    acquires: int
    """Waiting or not."""
    is_estimate: bool
    """Whether windows have seen a part of them only."""

    @property
    def share(self) -> float:
        """How many of the acquires took a wait."""
        return min(1.0, self.waits / max(1, self.acquires))


def base_rate(totals: ProcessTotals, duration_ns: int) -> BaseRate | None:
    """Return it for all threads in *duration_ns*; None: it is not known.

    Each hold began with an acquire, so that finished holds are the acquires. Where windows cover a
    part of the time, those outside of them are taken to have been as frequent.
    """
    waits = sum(thread.waits for thread in totals.threads)
    about = [thread.acquires_about for thread in totals.threads]
    holds = [gil.holds.finished.count for gil in totals.gils if gil.holds is not None]
    if holds and totals.observed_ns:
        seen = sum(holds)
        if not is_held_estimated(totals.observed_ns, duration_ns):
            return BaseRate(waits, max(seen, waits), is_estimate=False)
        if seen < _LEAST_HOLDS:
            return None
        scaled = round(seen * duration_ns / totals.observed_ns)
        return BaseRate(waits, max(scaled, waits), is_estimate=True)
    known = [number for number in about if number is not None]
    if not known:
        return None
    # A thread without an estimate has acquired it too seldom for one, or only after waits.
    rest = sum(thread.waits for thread in totals.threads if thread.acquires_about is None)
    return BaseRate(waits, max(sum(known) + rest, waits), is_estimate=True)
