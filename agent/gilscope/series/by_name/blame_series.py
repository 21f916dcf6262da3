"""The series that say by name who kept whom waiting: of one process, or of one service."""

from collections.abc import Iterable
from typing import Final

from gilscope.series.by_name.ledger import Ledger
from gilscope.series.by_name.top_series import Shown, TopSeries
from gilscope.values import dataclass

__all__ = [
    "FALSE",
    "NOTHING",
    "TRUE",
    "BlameLedgers",
    "BlameSeries",
    "BlameSlots",
    "Limits",
    "blame_ledgers",
    "limits_of",
]

TRUE, FALSE = "true", "false"
"""Of the label ``application``."""
_FIRST_STATE: Final = "python"


@dataclass(frozen=True, slots=True)
class BlameSeries:
    """What the series show."""

    pairs: tuple[Shown, ...]
    """By waiter, holder and kind."""
    holders: tuple[Shown, ...]
    """By the holder's place, in the application if it has one there; whether it has; kind; and
    state."""
    slow_holders: tuple[Shown, ...]
    """By holder."""
    held_by: tuple[Shown, ...]
    """Like `holders`, but without a kind: whether anybody waited or not."""


NOTHING: Final = BlameSeries((), (), (), ())


@dataclass(frozen=True, slots=True)
class BlameLedgers:
    """What they are made of."""

    pairs: Ledger
    holders: Ledger
    slow: Ledger
    held: Ledger

    @property
    def all(self) -> tuple[Ledger, ...]:
        """They in the order of `BlameSeries`."""
        return self.pairs, self.holders, self.slow, self.held


def blame_ledgers(
    kinds: Iterable[str], above: BlameLedgers | None = None, *, asks_holder: bool = True
) -> BlameLedgers:
    """Return ledgers for what can be lost in *kinds* of waits, parts of those *above*.

    What can be lost is there before anything is: the first loss of a kind is an increase. Where a
    thread does not ask the holder (*asks_holder*) none can be slow to drop it.
    """
    told = tuple(kinds)
    both = TRUE, FALSE
    pairs, holders, slow, held = (None,) * 4 if above is None else above.all
    return BlameLedgers(
        pairs=Ledger(((kind,) for kind in told), pairs),
        holders=Ledger(((whose, kind, _FIRST_STATE) for whose in both for kind in told), holders),
        slow=Ledger([()] if asks_holder else [], slow),
        held=Ledger(((whose,) for whose in both), held),
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """How many places get series of their own."""

    pairs: int
    holders: int
    slow_holders: int
    held_by: int
    are_series: bool = False
    """These are numbers of series, and not of places, which may have several."""
    idle_ns: int | None = None
    """For how long a place keeps its own though it loses nothing, where there are too few; None:
    for good."""

    @property
    def all(self) -> tuple[int, ...]:
        """They in the order of `BlameSeries`."""
        return self.pairs, self.holders, self.slow_holders, self.held_by


def limits_of(pairs: int) -> Limits:
    """Return those of a process that has series for *pairs* pairs: as many for whatever else."""
    return Limits(pairs, pairs, pairs, pairs)


class BlameSlots:
    """Which places have series of their own, by *limits*."""

    def __init__(self, ledgers: BlameLedgers, limits: Limits) -> None:
        self._slots = tuple(
            TopSeries(
                ledger,
                limit,
                width,
                most=limit if limits.are_series else None,
                idle_ns=limits.idle_ns,
            )
            for ledger, limit, width in zip(ledgers.all, limits.all, (2, 1, 1, 1), strict=True)
        )
        self._ledgers = ledgers

    def blame(self, at_ns: int) -> BlameSeries:
        """Return what the series show now, at *at_ns*."""
        return BlameSeries(*(each.shown(at_ns) for each in self._slots))

    def forget_trifles(self, most: int) -> None:
        """Forget, in ledgers of more than *most* lines, the places without series of their own."""
        for ledger, slots in zip(self._ledgers.all, self._slots, strict=True):
            if len(ledger.lines) > most:
                ledger.forget_all_but(slots.chosen)
