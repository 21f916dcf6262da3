"""From the tables of the kernel to stops of the world."""

from gilscope.locks.stops import stops_of
from gilscope.locks.totals import RawLocks
from gilscope.model.locks import StopCause, WorldStops
from gilscope.model.stack import UNKNOWN_STACK
from support.recordings.locks import APPEND, MS, RELEASE, STACKS, stops

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
