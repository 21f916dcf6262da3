"""What is kept of threads that have ended."""

from dataclasses import replace

from gilscope.gil.totals.dead_threads import OTHER_ROLES, DeadThreads
from gilscope.model.gil import Tally, ThreadTotals
from gilscope.model.kinds import Kind
from support.recordings.gil import MS, thread


def _thread(role: str, ns: int, held_ns: int = 0) -> ThreadTotals:
    return replace(thread(7, role, {Kind.CONVOY: Tally(ns, 1)}), held=Tally(held_ns, 1))


def test_roles_are_bounded_and_nothing_is_lost() -> None:
    """
    Three thousand roles: the first and the costliest stay, the others are added up.
    """
    dead = DeadThreads()
    for number in range(3000):
        dead.add(_thread(f"role {number}", MS))
        if number % 1000 == 500:
            dead.add(_thread(f"waits long {number}", 900 * MS))
            dead.add(_thread(f"holds long {number}", 0, 900 * MS))
        assert len(dead) <= 193

    kept = {each.role: each for each in dead}
    assert {f"role {number}" for number in range(64)} < kept.keys()
    for number in (500, 1500, 2500):
        assert {f"waits long {number}", f"holds long {number}"} < kept.keys()
    assert 3006 == sum(each.waits for each in dead)
    assert 3000 * MS + 2700 * MS == sum(each.wait_ns for each in dead)
    assert 2700 * MS == sum(each.held.ns for each in dead if each.held is not None)
    assert OTHER_ROLES in kept


def test_threads_that_are_kept_by_themselves_are_added_up_with_the_next() -> None:
    """
    A list has an end; then there is one entry a role, of no thread in particular.
    """
    dead = DeadThreads()
    dead.keep(_thread("a", 1))
    dead.keep(_thread("a", 2))
    assert [(7, 1), (7, 2)] == [(each.tid, each.wait_ns) for each in dead]

    dead.add(_thread("b", 4))

    assert [(0, "a", 3), (0, "b", 4)] == [(each.tid, each.role, each.wait_ns) for each in dead]
