"""For how long what was counted of a process that has ended is kept."""

import math

from gilscope.process.attachment import Retention
from gilscope.text.units import NS_PER_S


def _over(retention: Retention, *ended_s: float, now_s: float = 1000) -> list[float]:
    ended_ns = {number: int(at_s * NS_PER_S) for number, at_s in enumerate(ended_s)}
    over = retention.over(ended_ns, int(now_s * NS_PER_S))
    return sorted(ended_s[number] for number in over)


def test_whose_end_was_told_is_kept_for_a_while() -> None:
    """
    To the second.
    """
    assert [969, 970] == _over(Retention(30, 1000 * NS_PER_S), 969, 970, 970.5, 1000)


def test_whose_end_nobody_has_seen_is_kept_for_minutes() -> None:
    """
    Until it was told, and no longer than twenty times as long as others.
    """
    untold = Retention(30, 500 * NS_PER_S)

    assert [400, 499] == _over(untold, 400, 499, 500, 900, now_s=1000)
    assert [400, 499, 500] == _over(untold, 400, 499, 500, 900, now_s=1100)


def test_of_thousands_whose_end_nobody_has_seen_the_last_are_kept() -> None:
    """
    256 of them: they would take memory for as long as nobody scrapes.
    """
    ended = [500.0 + number / 10 for number in range(1000)]

    assert ended[: 1000 - 256] == _over(Retention(30), *ended)


def test_a_recording_keeps_all() -> None:
    """
    However many have ended before.
    """
    ended = [float(number) for number in range(1000)]

    assert [] == _over(Retention(math.inf, 2000 * NS_PER_S), *ended)


def test_nothing_is_kept_where_nothing_is_to_be() -> None:
    """
    Told or not.
    """
    assert [999, 1000] == _over(Retention(0), 999, 1000)
