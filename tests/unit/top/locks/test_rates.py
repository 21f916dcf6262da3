"""Locks between two snapshots: what each process lost, and its threads by name."""

from dataclasses import replace

from gilscope.model.locks import LockObservation, LockTotals
from gilscope.top.locks.rates import LockThreadRates, lock_rates
from support.recordings.locks import MS, lock_recording

_FIRST = lock_recording().observation


def _totals(seen: LockObservation) -> LockTotals:
    assert seen.totals is not None
    return seen.totals


def _later(wait_ms: int, observed_ms: int, pid: int = 4711) -> LockObservation:
    """Return what there is when the first thread has waited for *wait_ms* more, and once more."""
    first, *others = _totals(_FIRST).threads
    wait, *waits = first.waits
    more = replace(wait, wait_ns=wait.wait_ns + wait_ms * MS, waits=wait.waits + 1)
    totals = replace(
        _totals(_FIRST), at_ns=3000 * MS, threads=(replace(first, waits=(more, *waits)), *others)
    )
    return replace(
        _FIRST,
        process=replace(_FIRST.process, pid=pid),
        totals=totals,
        observed_ns=_FIRST.observed_ns + observed_ms * MS,
    )


def test_rates_are_of_the_interval() -> None:
    """
    What threads have waited since the last look; one that has not is not there.
    """
    (rates,) = lock_rates([_FIRST], [_later(7, 500)])

    assert (500 * MS, 7 * MS, 1) == (rates.observed_ns, rates.lost_ns, rates.waits)
    assert (LockThreadRates("first", 1, 7 * MS, 1),) == rates.threads
    assert not rates.is_earlier


def test_first_look_is_measured_from_the_attachment_on() -> None:
    """
    Idle time is not lost; threads that were, are listed by what they lost.
    """
    (rates,) = lock_rates([], [_FIRST])

    assert (1000 * MS, 50 * MS) == (rates.observed_ns, rates.lost_ns)
    assert [("first", 30 * MS), ("second", 20 * MS)] == [
        (each.name, each.lost_ns) for each in rates.threads
    ]


def test_figures_of_the_last_window_stay() -> None:
    """
    Until the next window, and marked as such; the sums below are those of now.
    """
    later = _later(7, 500)
    first = lock_rates([_FIRST], [later])
    now = replace(later, totals=replace(_totals(later), at_ns=9000 * MS))
    (second,) = lock_rates([later], [now], first)

    assert (7 * MS, True) == (second.lost_ns, second.is_earlier)
    assert now is second.seen


def test_worst_process_is_first_and_one_without_figures_last() -> None:
    """
    One that could not be traced at all is left out.
    """
    bad = replace(_later(99, 1, pid=1), invalid="its probe has gone")
    never = lock_recording(has_totals=False).observation
    found = lock_rates([_FIRST], [bad, _later(7, 500), never])

    assert [(4711, 7 * MS), (1, 0)] == [(each.process.pid, each.lost_ns) for each in found]
