"""When threads waited most."""

import random

from gilscope.series.moments.worst_window import worst_window


def _waited_ns(waits: list[tuple[int, int]], start: int, length: int) -> int:
    return sum(max(0, min(end, start + length) - max(began, start)) for began, end in waits)


def test_most_waits_at_once_are_found() -> None:
    """
    Three that wait for 10 weigh more than one that waits for 25.
    """
    assert 100 == worst_window([(0, 25), (100, 110), (100, 110), (105, 120)], 20)


def test_window_ends_where_a_wait_does() -> None:
    """
    It has to begin before any of them, to have all of both.
    """
    assert 80 == worst_window([(0, 1), (85, 90), (90, 100), (92, 100)], 20)


def test_first_of_equals_is_taken() -> None:
    """
    One thread that waits all the time.
    """
    assert 0 == worst_window([(0, 1000)], 200)
    assert 7 == worst_window([(7, 9)], 200)


def test_no_other_beginning_has_more() -> None:
    """
    Compared with every beginning that there is, for random waits.
    """
    choose = random.Random(7)  # noqa: S311 - the same waits each time
    for _ in range(50):
        begun = [choose.randrange(200) for _ in range(12)]
        waits = [(began, began + choose.randrange(40)) for began in begun]
        most = max(_waited_ns(waits, start, 30) for start in range(-30, 260))

        assert most == _waited_ns(waits, worst_window(waits, 30), 30)
