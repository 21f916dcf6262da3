"""Places in the probes' arrays: one owner each, and the one given back last is reused last."""

from gilscope.gil.probes.slots import SlotPool


def test_every_slot_has_one_owner() -> None:
    """
    All numbers are given out once, then none.
    """
    slots = SlotPool(3)

    assert [0, 1, 2, None, None] == [slots.take() for _ in range(5)]


def test_a_slot_that_was_given_back_is_taken_last() -> None:
    """
    A probe that fires late meets nobody else's record for as long as possible.
    """
    slots = SlotPool(3)
    slots.take()
    slots.give_back(0)

    assert [1, 2, 0, None] == [slots.take() for _ in range(4)]


def test_no_slots_at_all() -> None:
    """
    An array without room has nothing to give.
    """
    assert SlotPool(0).take() is None
