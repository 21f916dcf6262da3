"""Histograms: slots, published buckets, quantiles."""

from gilscope.model.histogram import BOUNDS_NS, EMPTY, SLOTS, slot_of, total
from support.recordings.durations import histogram


def test_slot_holds_its_upper_bound() -> None:
    """
    A value of exactly 2**k lies in slot k, one more in the next: bounds are what `le` says.
    """
    assert [0, 0, 1, 2, 2, 3] == [slot_of(ns) for ns in (0, 1, 2, 3, 4, 5)]
    assert [20, 21] == [slot_of(1 << 20), slot_of((1 << 20) + 1)]


def test_overflow_lies_in_the_last_slot() -> None:
    """
    However long a wait is, it has a slot.
    """
    assert SLOTS - 1 == slot_of(1 << 34 | 1) == slot_of(1 << 60)


def test_cumulative_counts_overflow_nowhere() -> None:
    """
    What is longer than the last bound is in no bucket, so only +Inf has it.
    """
    made = histogram(500, 1024, 1025, 1 << 40)

    buckets = dict(made.cumulative())

    assert list(BOUNDS_NS) == list(buckets)
    assert 2 == buckets[1 << 10]
    assert 3 == buckets[1 << 11] == buckets[1 << 34]
    assert 4 == made.count


def test_sum_is_exact() -> None:
    """
    The sum does not come from the slots.
    """
    assert 1_000_000_007 == histogram(1_000_000_000, 7).sum_ns


def test_quantile_is_the_bound_of_its_slot() -> None:
    """
    Half of 100 values at 3 us and half at 3 ms: the median is below 4.096 us, p99 below 4.19 ms.
    """
    made = histogram(*[3000] * 50, *[3_000_000] * 50)

    assert 1 << 12 == made.quantile_ns(0.5)
    assert 1 << 22 == made.quantile_ns(0.51) == made.quantile_ns(0.99)
    assert EMPTY.quantile_ns(0.5) is None


def test_histograms_add_up_and_subtract() -> None:
    """
    Sums and differences are those of every slot and of the sum.
    """
    one, other = histogram(10, 2000), histogram(2000, 1 << 30)

    assert histogram(10, 2000, 2000, 1 << 30) == one + other == total([one, other])
    assert one == one + other - other
    assert EMPTY == total([])
