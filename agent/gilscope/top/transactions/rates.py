"""What the transactions of a traced process have done between two snapshots."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gilscope.model.transactions import StmObservation, StmProcess, StmThread, StmTotals
from gilscope.values import dataclass

__all__ = ["StmRates", "StmThreadRates", "stm_rates"]


@dataclass(frozen=True, slots=True)
class StmThreadRates:
    """The threads of one name, in one interval; what is None the method does not see."""

    name: str
    threads: int
    """That have ended a transaction since the attachment."""
    commits: int
    aborts: int | None
    lost_ns: int | None
    """Run time of tries that were aborted."""


@dataclass(frozen=True, slots=True)
class StmRates:
    """One process in one interval, inside of windows; what is None the method does not see."""

    seen: StmObservation
    """What it comes from: all figures since the attachment."""
    observed_ns: int = 0
    """How much of the interval windows have covered; 0: none of it, or there are no figures."""
    commits: int = 0
    aborts: int | None = None
    aborted_ns: int | None = None
    """Run time of tries that were aborted."""
    paused_ns: int | None = None
    """Waits of all kinds."""
    threads: tuple[StmThreadRates, ...] = ()
    """Those that lost the most first."""
    is_earlier: bool = False
    """Whether they are of an earlier interval, as windows have covered nothing of this one."""

    @property
    def process(self) -> StmProcess:
        """Whose they are."""
        return self.seen.process

    @property
    def lost_ns(self) -> int | None:
        """Time that all threads lost: in tries that were aborted, and paused."""
        known = [ns for ns in (self.aborted_ns, self.paused_ns) if ns is not None]
        return sum(known) if known else None


def stm_rates(
    before: Iterable[StmObservation],
    now: Iterable[StmObservation],
    shown: Iterable[StmRates] = (),
) -> tuple[StmRates, ...]:
    """Return what each process of *now* has done since *before*, the worst first.

    A process that was not there before, was attached anew, or had no figures is measured from its
    attachment on. A counter that has fallen counts as having stood still. Where no window has
    covered anything since, it keeps the figures that are *shown*.
    """
    last = {_identity(each.seen): each for each in shown}
    known = {_identity(seen): seen for seen in before if not seen.invalid}
    found = [
        _kept(_rates(known.get(_identity(seen)), seen), last.get(_identity(seen))) for seen in now
    ]
    return tuple(sorted(found, key=lambda each: (-(each.lost_ns or 0), each.process.pid)))


def _kept(rates: StmRates, shown: StmRates | None) -> StmRates:
    if rates.observed_ns or rates.seen.invalid or shown is None or not shown.observed_ns:
        return rates
    return replace(shown, seen=rates.seen, is_earlier=True)


def _identity(seen: StmObservation) -> tuple[int, int]:
    return seen.process.pid, seen.since_ns


def _rates(before: StmObservation | None, seen: StmObservation) -> StmRates:
    if seen.invalid:
        return StmRates(seen)
    now = seen.totals
    earlier = None if before is None else before.totals
    return StmRates(
        seen,
        observed_ns=max(0, seen.observed_ns - (0 if before is None else before.observed_ns)),
        commits=max(0, now.commits - (0 if earlier is None else earlier.commits)),
        aborts=_gain(None if earlier is None else earlier.aborts, now.aborts),
        aborted_ns=_gain(_aborted_ns(earlier), _aborted_ns(now)),
        paused_ns=_gain(_paused_ns(earlier), _paused_ns(now)),
        threads=_threads(() if earlier is None else earlier.threads, seen),
    )


def _aborted_ns(totals: StmTotals | None) -> int | None:
    return None if totals is None or totals.aborted is None else totals.aborted.sum_ns


def _paused_ns(totals: StmTotals | None) -> int | None:
    if totals is None or totals.waits is None:
        return None
    return sum(tally.ns for tally in totals.waits.values())


def _threads(before: Sequence[StmThread], seen: StmObservation) -> tuple[StmThreadRates, ...]:
    earlier, method = _by_name(before), seen.process.method
    found = []
    for name, threads in _by_name(seen.totals.threads).items():
        same = earlier.get(name, ())
        lost_ns = max(0, _sum_ns(threads) - _sum_ns(same))
        found.append(
            StmThreadRates(
                name,
                len(threads),
                max(0, _commits(threads) - _commits(same)),
                max(0, _aborts(threads) - _aborts(same)) if method.has_aborts else None,
                lost_ns if method.has_abort_costs else None,
            )
        )
    return tuple(sorted(found, key=lambda each: (-(each.lost_ns or 0), -each.commits, each.name)))


def _by_name(threads: Iterable[StmThread]) -> Mapping[str, Sequence[StmThread]]:
    found: dict[str, list[StmThread]] = {}
    for thread in threads:
        found.setdefault(thread.name, []).append(thread)
    return found


def _commits(threads: Iterable[StmThread]) -> int:
    return sum(thread.committed.count for thread in threads)


def _aborts(threads: Iterable[StmThread]) -> int:
    return sum(thread.aborted.count for thread in threads)


def _sum_ns(threads: Iterable[StmThread]) -> int:
    return sum(thread.aborted.ns for thread in threads)


def _gain(before: int | None, now: int | None) -> int | None:
    return None if now is None else max(0, now - (before or 0))
