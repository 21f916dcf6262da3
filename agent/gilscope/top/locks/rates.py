"""What threads of a traced process have waited for, besides a GIL, between two snapshots."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from gilscope.model.locks import LockObservation, LockProcess, LockThread, LockTotals
from gilscope.series.locks.since import lock_observation_since
from gilscope.values import dataclass

__all__ = ["LockRates", "LockThreadRates", "lock_rates"]


@dataclass(frozen=True, slots=True)
class LockThreadRates:
    """The threads of one name, in one interval."""

    name: str
    """As the kernel knows them."""
    threads: int
    """That have waited in it."""
    lost_ns: int
    waits: int


@dataclass(frozen=True, slots=True)
class LockRates:
    """One process in one interval, inside of windows."""

    seen: LockObservation
    """What it comes from: all figures since the attachment."""
    lately: LockTotals
    """Those of the interval."""
    observed_ns: int = 0
    """How much of the interval windows have covered; 0: none of it, or there are no figures."""
    threads: tuple[LockThreadRates, ...] = ()
    """Those that lost the most first."""
    is_earlier: bool = False
    """Whether they are of an earlier interval, as windows have covered nothing of this one."""

    @property
    def process(self) -> LockProcess:
        """Whose they are."""
        return self.seen.process

    @property
    def lost_ns(self) -> int:
        """Time that all threads lost waiting in the interval."""
        return self.lately.contended_ns

    @property
    def waits(self) -> int:
        """How often they did."""
        return sum(map(_waits, self.lately.threads))


def lock_rates(
    before: Iterable[LockObservation],
    now: Iterable[LockObservation],
    shown: Iterable[LockRates] = (),
) -> tuple[LockRates, ...]:
    """Return what each process of *now* that has figures has done since *before*, the worst first.

    A process that was not there before, was attached anew, or had no figures is measured from its
    attachment on. Where no window has covered anything since, it keeps the figures that are
    *shown*.
    """
    last = {_identity(each.seen): each for each in shown}
    known = {_identity(seen): seen for seen in before if seen.totals and not seen.invalid}
    found = [
        _kept(_rates(known.get(_identity(seen)), seen, seen.totals), last.get(_identity(seen)))
        for seen in now
        if seen.totals is not None
    ]
    return tuple(sorted(found, key=lambda each: (-each.lost_ns, each.process.pid)))


def _kept(rates: LockRates, shown: LockRates | None) -> LockRates:
    if rates.observed_ns or rates.seen.invalid or shown is None or not shown.observed_ns:
        return rates
    return replace(shown, seen=rates.seen, is_earlier=True)


def _identity(seen: LockObservation) -> tuple[int, int]:
    return seen.process.pid, seen.since_ns


def _rates(before: LockObservation | None, seen: LockObservation, totals: LockTotals) -> LockRates:
    if seen.invalid:
        return LockRates(seen, LockTotals(totals.at_ns))
    since = seen if before is None else lock_observation_since(seen, before)
    lately = totals if since.totals is None else since.totals
    return LockRates(seen, lately, since.observed_ns, _threads(lately.threads))


def _threads(threads: Iterable[LockThread]) -> tuple[LockThreadRates, ...]:
    by_name: dict[str, list[LockThread]] = defaultdict(list)
    for thread in threads:
        if thread.contended_ns:
            by_name[thread.name].append(thread)
    found = [
        LockThreadRates(
            name, len(same), sum(one.contended_ns for one in same), sum(map(_waits, same))
        )
        for name, same in by_name.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.lost_ns, each.name)))


def _waits(thread: LockThread) -> int:
    return sum(wait.waits for wait in thread.waits if wait.kind.is_contention)
