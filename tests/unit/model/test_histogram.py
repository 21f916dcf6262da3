"""Histograms: slots, published buckets, quantiles."""

import random
from fractions import Fraction

import pytest

from gilscope.model.histogram import (
    BOUNDS_NS,
    EMPTY,
    OCTAVES,
    SLOTS,
    Histogram,
    bound_ns,
    slot_of,
    total,
    upto_bounds,
)
from support.recordings.durations import histogram

_LAST_NS = BOUNDS_NS[-1]


def test_every_slot_begins_where_the_one_before_it_ends() -> None:
    """
    Its bound lies in it, and one more in the next: bounds are what `le` says. None is left out.
    """
    bounds_ns = [bound_ns(slot) for slot in range(SLOTS - 1)]

    assert sorted(set(bounds_ns)) == bounds_ns
    assert list(range(SLOTS - 1)) == [slot_of(ns) for ns in bounds_ns]
    assert list(range(1, SLOTS)) == [slot_of(ns + 1) for ns in bounds_ns]
    assert (0, 0, 1) == (slot_of(0), slot_of(1), slot_of(2))
    assert (_LAST_NS, SLOTS - 1) == (bounds_ns[-1], slot_of(1 << 63))


def test_each_slot_is_as_wide_by_what_is_in_it() -> None:
    """
    An eighth of an octave, to the nanosecond; or it is one nanosecond wide.
    """
    for slot in range(1, SLOTS - 1):
        lower_ns, upper_ns = bound_ns(slot - 1), bound_ns(slot)

        assert upper_ns == lower_ns + 1 or abs(upper_ns / lower_ns - 2 ** (1 / 8)) <= (
            2 / lower_ns + 2**-30
        ), slot


def test_each_power_of_two_ends_a_slot() -> None:
    """
    So that the buckets of Prometheus, and octaves, are sums of whole slots.
    """
    powers = {1 << octave for octave in range(OCTAVES - 1)}

    assert powers <= {bound_ns(slot) for slot in range(SLOTS - 1)}
    assert set(BOUNDS_NS) <= powers


def test_overflow_lies_in_the_last_slot() -> None:
    """
    However long a wait is, it has a slot.
    """
    assert SLOTS - 1 == slot_of(1 << 34 | 1) == slot_of(1 << 60)


def test_cumulative_counts_overflow_nowhere() -> None:
    """
    What is longer than the last bound is in no bucket, so only +Inf has it.
    """
    made = histogram(500, 1 << 14, (1 << 14) + 1, 1 << 40)

    buckets = dict(made.cumulative())

    assert list(BOUNDS_NS) == list(buckets)
    assert 2 == buckets[1 << 14]
    assert 3 == buckets[1 << 16] == buckets[1 << 34]
    assert 4 == made.count
    assert (*buckets.values(), 4) == upto_bounds(made.slots)


def _some_values(seed: int) -> list[int]:
    """Return durations of all lengths, with many at bounds and beside them."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    values = [int(2 ** chance.uniform(0, 36)) for _ in range(500)]
    near = [bound_ns(chance.randrange(SLOTS - 1)) + chance.choice((-1, 0, 1)) for _ in range(500)]
    return values + near


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_slots_are_exact(seed: int) -> None:
    """
    Buckets and octaves have the values themselves between their bounds.
    """
    values = _some_values(seed)
    made = histogram(*values)

    assert [(bound, sum(ns <= bound for ns in values)) for bound in BOUNDS_NS] == list(
        made.cumulative()
    )
    octaves = [min(max(ns - 1, 0).bit_length(), OCTAVES - 1) for ns in values]
    assert [octaves.count(octave) for octave in range(OCTAVES)] == list(made.octaves())


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_within_a_twentieth(seed: int) -> None:
    """
    Of the value that has so many up to it, whichever it is; or a sixteenth, of some nanoseconds.
    """
    values = sorted(min(ns, _LAST_NS) for ns in _some_values(seed) if ns > 0)
    made = histogram(*values)

    for index, exact_ns in enumerate(values):
        told_ns = made.quantile_ns((index + 0.5) / len(values))
        assert told_ns is not None
        most = Fraction(1, 20 if exact_ns > 64 else 16)
        assert abs(Fraction(told_ns, exact_ns) - 1) <= most, exact_ns


def test_quantiles_of_little() -> None:
    """
    Beyond the last bound it is the last bound; of nothing there are none.
    """
    assert (1, 1) == (histogram(0).quantile_ns(0), histogram(1).quantile_ns(1))
    assert _LAST_NS == histogram(1 << 40).quantile_ns(0.5)
    assert EMPTY.quantile_ns(0.5) is None


def test_buckets_are_those_that_have_any_with_the_bounds_around_them() -> None:
    """
    8 us lies between 7.513 and 8.192 us; in the first slot nothing is below.
    """
    made = histogram(8000, 8192, 8193, 1, 1 << 40)

    assert ((1, 1), (7513, 0), (8192, 2), (8934, 1), (bound_ns(SLOTS - 2), 0), (None, 1)) == (
        made.buckets()
    )
    assert ((None, 0),) == EMPTY.buckets()


def test_sum_is_exact() -> None:
    """
    The sum does not come from the slots.
    """
    assert 1_000_000_007 == histogram(1_000_000_000, 7).sum_ns


def test_histograms_add_up_and_subtract() -> None:
    """
    Sums and differences are those of every slot and of the sum.
    """
    one, other = histogram(10, 2000), histogram(2000, 1 << 30)

    assert histogram(10, 2000, 2000, 1 << 30) == one + other == total([one, other])
    assert one == one + other - other
    assert EMPTY == total([])


def test_a_histogram_is_its_slots_and_its_sum() -> None:
    """
    Thousands are remembered, so slots that count nothing are not kept; told and compared are all.
    """
    for values_ns in ((), (0,), (1 << 60,), (0, 1 << 60), (7, 9, 1 << 33), (100_000, 300_000)):
        made = histogram(*values_ns)

        assert dict.fromkeys(map(slot_of, values_ns), 1) == {
            slot: count for slot, count in enumerate(made.slots) if count
        }
        assert SLOTS == len(made.slots)
        assert made == Histogram(list(made.slots), sum(values_ns))
        assert hash(made) == hash(Histogram(list(made.slots), sum(values_ns)))
        assert made != Histogram(made.slots, sum(values_ns) + 1)
        assert made != histogram(*values_ns, 50)
        assert made.is_empty is (values_ns == ())


def test_a_histogram_has_all_slots() -> None:
    """
    Fewer were those of another version of the probes.
    """
    with pytest.raises(ValueError, match=f"has {SLOTS} slots, and not 3"):
        Histogram((1, 2, 3), 6)


@pytest.mark.parametrize("seed", range(20))
def test_sums_and_differences_are_those_of_all_slots(seed: int) -> None:
    """
    Also with one that counts nothing.
    """
    one, other = (histogram(*_some_values(seed + more)[: seed * 3]) for more in (0, 100))

    both = one + other

    assert both.slots == tuple(a + b for a, b in zip(one.slots, other.slots, strict=True))
    assert (both - other, both - one, both.sum_ns) == (one, other, one.sum_ns + other.sum_ns)
    assert (one + EMPTY, EMPTY + one, one - EMPTY, (one - one).is_empty) == (one, one, one, True)
