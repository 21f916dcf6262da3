"""What was lost in about the last minute."""

import pytest

from gilscope.series.by_name.ledger import Line, Place, Sum
from gilscope.series.recent_losses import RecentLosses

_S = 1_000_000_000


def _lines(*times_ns: int) -> list[Line]:
    return [Line(Place(()), (), Sum(), ns) for ns in times_ns]


def _scraped_each(apart_s: int, until_s: int) -> RecentLosses:
    """Return scrapes at which the first line loses 1 ns a second, and the second is a new one."""
    recent = RecentLosses(0)
    for at_s in range(apart_s, until_s + 1, apart_s):
        recent.sample(at_s * _S, _lines(at_s))
    return recent


def test_process_that_was_just_found() -> None:
    """
    The period is all there is.
    """
    recent = RecentLosses(5 * _S)
    recent.sample(12 * _S, _lines(70))

    assert 5 * _S == recent.since_ns(12 * _S)
    assert [70] == recent.lost_ns(12 * _S, _lines(70))


@pytest.mark.parametrize(("apart_s", "period_s"), [(5, 75), (15, 75), (30, 60), (60, 60), (70, 70)])
def test_regular_scrapes_give_about_a_minute(apart_s: int, period_s: int) -> None:
    """
    Whatever the interval is, up to a little more than a minute; new lines have lost all they have.
    """
    recent = _scraped_each(apart_s, 2100)

    assert 2100 - period_s == recent.since_ns(2100 * _S) // _S
    assert [period_s, 9] == recent.lost_ns(2100 * _S, _lines(2100, 9))


def test_after_long_silence_the_period_is_all_the_time() -> None:
    """
    And the next look has one since this one, unless it follows at once.
    """
    recent = _scraped_each(5, 100)
    recent.sample(1000 * _S, _lines(1000))

    assert 0 == recent.since_ns(1000 * _S)
    assert [1000] == recent.lost_ns(1000 * _S, _lines(1000))
    assert 0 == recent.since_ns(1000 * _S + _S // 2)
    assert 1000 * _S == recent.since_ns(1003 * _S)
    assert [3] == recent.lost_ns(1003 * _S, _lines(1003))
