"""From when to when holds count."""

import pytest

from gilscope.gil.probes.coverage import NEVER_NS, Bounds


@pytest.mark.parametrize(
    ("since_ns", "now_ns", "part_ns"),
    [(110, 120, 10), (90, 120, 20), (110, 300, 90), (0, 300, 100), (10, 90, 0), (210, 250, 0)],
)
def test_what_lies_inside_counts(since_ns: int, now_ns: int, part_ns: int) -> None:
    """
    Of a hold that began before or ended behind, the part.
    """
    assert part_ns == Bounds(100, 200).part_ns(since_ns, now_ns)


def test_before_the_first_window_nothing_counts() -> None:
    """
    And in one that is open all that comes does.
    """
    assert 0 == Bounds(NEVER_NS, 0).part_ns(0, 10**18)
    assert 10**18 - 7 == Bounds(7, NEVER_NS).part_ns(0, 10**18)
