"""From the tables of the kernel to stops of the world."""

from gilscope.locks.stops import stops_of
from gilscope.locks.totals import RawLocks
from gilscope.model.locks import StopCause, WorldStops
from gilscope.model.stack import UNKNOWN_STACK
from support.recordings.locks import APPEND, MS, RELEASE, STACKS, stops, thread

_NOW_NS = 1_000 * MS


def test_stops_are_by_cause_and_place() -> None:
    """
    Those that took longest first, with what each had to do with threads that were slow to stop.
    """
    tables = RawLocks(
        _NOW_NS,
        stops=[stops(2, 1, 3, is_collection=0, stack=RELEASE), stops(5, 2, 8), stops(1, 0, 1)],
    )
    found = stops_of(tables, STACKS)

    assert (
        WorldStops(StopCause.COLLECTION, STACKS[APPEND], 6, 2 * MS, 9 * MS, 5 * MS),
        WorldStops(StopCause.OTHER, STACKS[RELEASE], 2, 1 * MS, 3 * MS, 2 * MS),
    ) == found
    assert (11 * MS, 0.25) == (found[0].ns, found[1].stopping_share)


def test_a_place_that_is_not_known_has_stops_too() -> None:
    """
    A thread that runs no Python may collect.
    """
    (found,) = stops_of(RawLocks(_NOW_NS, stops=[stops(1, 0, 4, stack=99)]), STACKS)

    assert UNKNOWN_STACK == found.stack


def test_a_stop_that_goes_on_counts_as_far_as_it_is_known() -> None:
    """
    It has been asked for; how long the world has stood since is told at its end.
    """
    asking = thread(
        asked_ns=_NOW_NS - 10 * MS,
        stands_ns=_NOW_NS - 7 * MS,
        stop_stack=APPEND,
        stop_is_collection=1,
    )
    waiting = thread(asked_ns=_NOW_NS - 1 * MS, stop_stack=APPEND)
    tables = RawLocks(_NOW_NS, {11: asking, 12: waiting, 13: thread()})

    assert (
        WorldStops(StopCause.COLLECTION, STACKS[APPEND], 1, 3 * MS, 0, 3 * MS),
        WorldStops(StopCause.OTHER, STACKS[APPEND], 1, 0, 0, 0),
    ) == stops_of(tables, STACKS)
    assert () == stops_of(tables, STACKS, has_flights=False)
