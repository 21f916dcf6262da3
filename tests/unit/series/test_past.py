"""Which observations of the last minutes are remembered."""

from dataclasses import replace

from gilscope.model.gil import GilObservation
from gilscope.series.past import LONGEST_S, Past
from support.recordings.gil import MS, PROCESS, gil, observation, thread

_S = 1000 * MS
_ATTACHED_NS = 5 * _S


def _seen(at_s: float, pid: int = 4711, since_ns: int = _ATTACHED_NS) -> GilObservation:
    seen = observation()
    totals = replace(seen.totals, at_ns=int(at_s * _S))
    return replace(seen, totals=totals, since_ns=since_ns, process=replace(PROCESS, pid=pid))


def _past(*times_s: float, most_bytes: int = 1 << 30) -> Past[GilObservation]:
    past: Past[GilObservation] = Past(most_bytes)
    for at_s in times_s:
        past.enter(int(at_s * _S), [_seen(at_s)])
    return past


def _near_s(past: Past[GilObservation], at_s: float, now_s: float = 100) -> float | None:
    found = past.near(int(at_s * _S), _seen(now_s))
    return None if found is None else found.totals.at_ns / _S


def test_the_nearest_one_is_found() -> None:
    """
    Whether it is a little older or younger than what is wanted.
    """
    past = _past(20, 30, 40, 50)

    assert [30, 40, 50, 20] == [_near_s(past, at_s) for at_s in (34, 36, 90, 14)]


def test_those_that_follow_closely_are_left_out() -> None:
    """
    They would take memory and tell nothing new.
    """
    past = _past(20, 24, 27, 28)

    assert [20, 28] == [_near_s(past, 23), _near_s(past, 25)]


def test_nothing_is_known_from_before_the_attachment() -> None:
    """
    Then the sums are those since then, as they are.
    """
    past = _past(20)

    assert [None, None] == [_near_s(past, 4), _near_s(past, 6)]
    assert None is _near_s(_past(), 50)
    assert None is _near_s(past, 19, now_s=20)


def test_another_process_of_the_same_number_is_another_one() -> None:
    """
    Its sums began anew.
    """
    past = _past(20)

    assert None is past.near(20 * _S, _seen(100, since_ns=50 * _S))
    assert None is past.near(20 * _S, _seen(100, pid=4712))


def test_what_is_too_old_is_forgotten() -> None:
    """
    No report reaches further back.
    """
    past = _past(20, 100, 20 + LONGEST_S + 1)

    assert 100 == _near_s(past, 59, now_s=1000)


def test_memory_is_bounded_and_the_latest_stays() -> None:
    """
    When there are too many, every second one goes, from the latest back.
    """
    past = _past(*range(10, 110, 10), most_bytes=4000)
    found = {_near_s(past, at_s, now_s=200) for at_s in range(10, 110)}

    assert 100 in found
    assert len(found) < 6
    assert {None, 20} == {_near_s(_past(20, most_bytes=1), 6), _near_s(_past(20, most_bytes=1), 20)}


def test_what_cannot_be_trusted_is_not_kept() -> None:
    """
    It has no totals.
    """
    past: Past[GilObservation] = Past()
    past.enter(20 * _S, [replace(_seen(20), invalid="more releases than acquires")])

    assert None is _near_s(past, 20)


def test_what_has_not_changed_is_remembered_once() -> None:
    """
    Most of a thousand processes are idle, and each is remembered several times.
    """
    busy, idle, other = (thread(tid, "worker", {}) for tid in (7, 8, 9))
    lock = gil()
    first, second, third = (
        replace(
            _seen(at_s),
            totals=replace(
                observation().totals,
                at_ns=at_s * _S,
                threads=(replace(busy, drop_requests=requests), *map(replace, (idle, other))),
                gils=(replace(lock),),
            ),
        )
        for at_s, requests in ((20, 1), (30, 1), (40, 2))
    )
    past: Past[GilObservation] = Past()
    for each in (first, second, third):
        past.enter(each.totals.at_ns, [each])

    found = [past.near(at_s * _S, _seen(100)) for at_s in (20, 30, 40)]

    assert [first, second, third] == found
    one, two, three = (each.totals for each in found if each is not None)
    assert first.totals.threads is one.threads is two.threads
    assert first.totals.gils is one.gils is two.gils is three.gils
    assert [third.totals.threads[0], *one.threads[1:]] == list(three.threads)
    assert [False, True, True] == [
        now is before for now, before in zip(three.threads, one.threads, strict=True)
    ]
