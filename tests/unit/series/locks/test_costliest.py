"""How places at locks are ranked."""

from gilscope.model.locks import LockKind
from gilscope.series.locks.costliest import OtherEnd, places_of
from support.recordings.locks import HOLD, MS, RELEASE, STACKS, lock_recording


def test_places_are_by_lock_and_function_and_the_costliest_comes_first() -> None:
    """
    What a thread was idle is none; who held and who released is the one behind most of the time.
    """
    totals = lock_recording().observation.totals
    assert totals is not None
    of_list, of_lock = places_of(totals)

    assert (LockKind.OBJECT, 30 * MS, 15 * MS) == (of_list.kind, of_list.wait_ns, of_list.slept_ns)
    assert (2, 24 * MS) == (of_list.number, of_list.longest_ns)
    assert [
        OtherEnd("held by", STACKS[HOLD], 1.0),
        OtherEnd("released by", STACKS[RELEASE], 0.8),
    ] == of_list.other_ends()
    assert (LockKind.LOCK, []) == (of_lock.kind, of_lock.other_ends())
