"""What is remembered of services, and for how long."""

from gilscope.series.by_name.remembered import Remembered

_S = 1_000_000_000


def _values(*keys: int) -> Remembered[int, list[int]]:
    values: Remembered[int, list[int]] = Remembered(list)
    for key in keys:
        values[key].append(key)
    return values


def test_what_is_missing_is_made_once() -> None:
    """
    By asking for it.
    """
    values = _values(1, 1)

    assert {1: [1, 1]} == values


def test_what_is_absent_stays_for_minutes() -> None:
    """
    Counted from when it was missed first; one that comes back in between begins anew.
    """
    values = _values(1, 2, 3)
    values.forget_absent({1}, 0)
    values.forget_absent({1, 2}, 200 * _S)
    values.forget_absent({1}, 299 * _S)
    early = set(values)
    values.forget_absent({1}, 300 * _S)

    assert {1, 2, 3} == early
    assert {1, 2} == set(values)


def test_of_too_many_the_oldest_are_forgotten() -> None:
    """
    Containers come and go, each with a name that never comes again.
    """
    values = _values(*range(300))
    values.forget_absent(range(44, 300), 0)
    values.forget_absent(range(50, 300), _S)
    first = set(values)
    values.forget_absent(range(299, 300), 2 * _S)

    assert set(range(300)) == first
    assert 257 == len(values)
    assert not set(range(43)) & set(values)
