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


def test_seconds_that_were_sent_as_a_whole_are_forgotten() -> None:
    """
    Days have many. Those that were cut are known, and counted.
    """
    seconds = Seconds(3)
    for second in range(100):
        for _ in range(2 if second % 10 == 0 else 1):
            seconds.add({"ended_ns": second * _SECOND + 5})

    assert 10 == seconds.cut_since()
    assert ((40 * _SECOND + 5, 41 * _SECOND),) == seconds.unseen(39 * _SECOND, 42 * _SECOND)
    assert len(seconds._spans) < 20  # noqa: SLF001 - of what nobody can see
