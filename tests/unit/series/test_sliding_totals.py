"""Totals at moments of the last minutes."""

import pytest

from gilscope.series.sliding_totals import SlidingTotals


def _kept(totals: SlidingTotals) -> list[tuple[int, list[int]]]:
    return [(at_ns, list(values)) for at_ns, values in totals.between(0, 1000)]


def test_samples_that_are_apart_are_kept() -> None:
    """
    What follows the last one too closely is not, and what is older is not either.
    """
    totals = SlidingTotals(most=9, apart_ns=10)
    for at_ns in (100, 109, 110, 105, 119, 125):
        totals.add(at_ns, [at_ns // 2, 7])

    assert [(100, [50, 7]), (110, [55, 7]), (125, [62, 7])] == _kept(totals)


def test_only_a_sample_that_is_due_is_kept() -> None:
    """
    Whoever has to reckon the totals first can ask before.
    """
    totals = SlidingTotals(most=9, apart_ns=10)
    assert totals.is_due(-5)

    totals.add(100, [1])

    assert [False, True] == [totals.is_due(at_ns) for at_ns in (109, 110)]


def test_the_oldest_make_room() -> None:
    """
    However many come, memory does not grow.
    """
    totals = SlidingTotals(most=3)
    for at_ns in range(500):
        totals.add(at_ns, [2 * at_ns])

    assert [(497, [994]), (498, [996]), (499, [998])] == _kept(totals)


@pytest.mark.parametrize(
    ("from_ns", "until_ns", "expected"),
    [(20, 30, [20, 30]), (21, 39, [30]), (31, 39, []), (0, 10, [10]), (40, 99, [40]), (41, 99, [])],
)
def test_a_period_has_both_of_its_ends(from_ns: int, until_ns: int, expected: list[int]) -> None:
    """
    Samples just at the bounds belong to it.
    """
    totals = SlidingTotals(most=9)
    for at_ns in (10, 20, 30, 40):
        totals.add(at_ns, ())

    assert expected == [at_ns for at_ns, _ in totals.between(from_ns, until_ns)]


def test_a_total_that_came_later_was_zero_before() -> None:
    """
    Even where there were none at first, and when the oldest samples have made room meanwhile.
    """
    totals = SlidingTotals(most=3)
    totals.add(10, ())
    totals.add(20, [5])
    totals.add(30, [6, 1, 2])
    assert [(10, [0, 0, 0]), (20, [5, 0, 0]), (30, [6, 1, 2])] == _kept(totals)

    totals.add(40, [7, 1, 2, 4])

    assert [(20, [5, 0, 0, 0]), (30, [6, 1, 2, 0]), (40, [7, 1, 2, 4])] == _kept(totals)


def test_totals_do_not_go() -> None:
    """
    Which one had gone would be a guess; what is kept stays as it is.
    """
    totals = SlidingTotals(most=3)
    totals.add(10, [1, 2])

    with pytest.raises(ValueError, match="1 totals after 2"):
        totals.add(20, [1])

    assert [(10, [1, 2])] == _kept(totals)
