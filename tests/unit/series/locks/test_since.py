"""What threads have waited for since an earlier observation of their locks."""

from dataclasses import replace

from gilscope.model.gil import TracingCost
from gilscope.model.locks import LockObservation, LockThread, LockTotals, StopCause
from gilscope.series.locks.since import lock_observation_since
from support.recordings.locks import MS, lock_recording

_EARLIER = lock_recording().observation


def _totals(seen: LockObservation) -> LockTotals:
    assert seen.totals is not None
    return seen.totals


def _later(**fields: object) -> LockObservation:
    totals = replace(_totals(_EARLIER), at_ns=5000 * MS, **fields)  # type: ignore[arg-type]
    return replace(_EARLIER, totals=totals, observed_ns=3000 * MS)


def _since(later: LockObservation) -> LockTotals:
    return _totals(lock_observation_since(later, _EARLIER))


def test_sums_are_those_of_the_time_between() -> None:
    """
    Of the threads that have waited since; what has not changed is gone.
    """
    first, second = _totals(_EARLIER).threads
    wait = second.waits[0]
    more = replace(
        wait,
        wait_ns=wait.wait_ns + 9 * MS,
        slept_ns=wait.slept_ns + 4 * MS,
        waits=wait.waits + 3,
        sleeps=wait.sleeps + 2,
    )
    later = _later(
        threads=(first, replace(second, waits=(more, *second.waits[1:]))),
        lost_events={"began_unseen": 4, "read_fault": 1},
        traps=50,
    )
    later = replace(later, cost=TracingCost(90_000, 0.002, 50))

    seen = lock_observation_since(later, _EARLIER)
    since = _totals(seen)

    (thread,) = since.threads
    assert (second.tid, second.name) == (thread.tid, thread.name)
    (told,) = thread.waits
    assert (9 * MS, 4 * MS, 3, 2) == (told.wait_ns, told.slept_ns, told.waits, told.sleeps)
    assert 9 * MS == told.longest_ns
    assert ({"began_unseen": 3, "read_fault": 1}, 30) == (since.lost_events, since.traps)
    assert (2000 * MS, 2000 * MS) == (seen.since_ns, seen.observed_ns)
    assert TracingCost(30_000, 0.002, 30) == seen.cost
    assert () == since.stops


def test_stops_of_the_world_since() -> None:
    """
    By place and cause.
    """
    collections, other = _totals(_EARLIER).stops
    more = replace(
        collections,
        stops=collections.stops + 2,
        stopping_ns=collections.stopping_ns + MS,
        standing_ns=collections.standing_ns + 3 * MS,
    )
    (told,) = _since(_later(stops=(more, other))).stops

    assert StopCause.COLLECTION == told.cause
    assert (2, MS, 3 * MS) == (told.stops, told.stopping_ns, told.standing_ns)
    assert 4 * MS == told.longest_ns


def test_a_thread_that_has_ended_meanwhile() -> None:
    """
    What it had waited for is in the sum of those that have ended, and is not lost once more.
    """
    first, second = _totals(_EARLIER).threads
    last = replace(first.waits[0], wait_ns=first.waits[0].wait_ns + 2 * MS)
    ended = LockThread(0, "ended", (last, *first.waits[1:]))

    (told,) = _since(_later(threads=(second, ended))).threads

    assert (0, [2 * MS]) == (told.tid, [wait.wait_ns for wait in told.waits])


def test_a_thread_with_the_number_of_one_that_has_ended() -> None:
    """
    It has waited for less than that one, and all of it since.
    """
    first, second = _totals(_EARLIER).threads
    anew = replace(first.waits[0], wait_ns=3 * MS, waits=1)
    (told,) = _since(_later(threads=(replace(first, waits=(anew,)), second))).threads

    assert [(3 * MS, 1)] == [(wait.wait_ns, wait.waits) for wait in told.waits]
