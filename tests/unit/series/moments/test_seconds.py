"""Seconds in which more happened than was sent."""

from gilscope.series.moments.seconds import Seconds

_SECOND = 1 << 30


def test_a_full_second_is_unseen_from_its_last_span_on() -> None:
    """
    One with fewer spans has no gap; what is asked for is all that is told.
    """
    seconds = Seconds(100)
    for number in range(100):
        seconds.add({"ended_ns": _SECOND + number})
    seconds.add({"ended_ns": 2 * _SECOND + 5})

    assert ((_SECOND + 99, 2 * _SECOND),) == seconds.unseen(0, 3 * _SECOND)
    assert ((_SECOND + 500, _SECOND + 700),) == seconds.unseen(_SECOND + 500, _SECOND + 700)
    assert () == seconds.unseen(_SECOND, _SECOND + 50)
