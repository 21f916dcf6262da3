"""Out of how many acquires waits were."""

from dataclasses import replace

from gilscope.model.gil import ProcessTotals
from gilscope.verdict.base_rate import BaseRate, base_rate
from support.recordings.durations import histogram
from support.recordings.gil import MS, convoy, full_mode


def _observed(observed_ns: int) -> ProcessTotals:
    return replace(full_mode().observation.totals, observed_ns=observed_ns)


def _about(*acquires: int | None) -> ProcessTotals:
    totals = convoy().observation.totals
    threads = zip(totals.threads, acquires, strict=True)
    return replace(
        totals, threads=tuple(replace(thread, acquires_about=of) for thread, of in threads)
    )


def test_where_holds_are_seen_it_is_exact() -> None:
    """
    Each of the 475 holds began with an acquire, and 235 of them with a wait.
    """
    base = base_rate(_observed(2000 * MS), 2000 * MS)

    assert BaseRate(235, 475, is_estimate=False) == base
    assert 235 / 475 == base.share


def test_windows_stand_for_the_rest() -> None:
    """
    A quarter of the time was seen.
    """
    base = base_rate(_observed(500 * MS), 2000 * MS)

    assert BaseRate(235, 4 * 475, is_estimate=True) == base


def test_few_holds_in_windows_say_nothing() -> None:
    """
    Scaled up, they would be a guess.
    """
    totals = _observed(500 * MS)
    (lock,) = totals.gils
    assert lock.holds is not None
    few = replace(lock.holds, finished=histogram(*[1] * 99))

    assert base_rate(replace(totals, gils=(replace(lock, holds=few),)), 2000 * MS) is None


def test_contention_mode_does_not_know() -> None:
    """
    An acquire that takes no wait meets no probe there.
    """
    assert base_rate(convoy().observation.totals, 2000 * MS) is None


def test_estimates_by_thread_are_added_up() -> None:
    """
    A thread without one has acquired it after its waits at least.
    """
    base = base_rate(_about(10_000, 500, None), 2000 * MS)

    assert BaseRate(235, 10_560, is_estimate=True) == base


def test_there_are_no_more_waits_than_acquires() -> None:
    """
    An estimate may be too low, and a hold still be going on behind a wait that is over.
    """
    base = base_rate(_about(1, 1, 1), 2000 * MS)

    assert BaseRate(235, 235, is_estimate=True) == base
    assert 1.0 == base.share
