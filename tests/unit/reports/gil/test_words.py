"""What reports call things."""

from dataclasses import replace

from gilscope.gil.abi import Loss
from gilscope.model.kinds import Kind
from gilscope.reports.gil.words import KIND_NAMES, LOST_WORDS, kind_words, lost_words
from support.recordings.gil import convoy

# Where one of these occurs, the recording is invalid as a whole and no number is told.
_SPOIL_EVERYTHING = {Loss.INVALID_MUTEX, Loss.INVALID_LOCKED, Loss.INVALID_INTERVAL}


def test_every_loss_has_words() -> None:
    """
    And nothing else has.
    """
    assert {loss.value for loss in set(Loss) - _SPOIL_EVERYTHING} == set(LOST_WORDS)


def test_every_kind_has_a_name_and_words() -> None:
    """
    In the same order.
    """
    assert set(Kind) == set(KIND_NAMES)
    assert list(KIND_NAMES) == list(kind_words(convoy().observation))


def test_a_lock_that_nobody_asks_for_has_no_switch_interval() -> None:
    """
    PyPy's and CPython 2.7's: what stands for it is a time.
    """
    seen = convoy().observation
    others = replace(seen, process=replace(seen.process, asks_holder=False))

    assert kind_words(seen)[Kind.CONVOY].endswith("queued for a switch interval or longer")
    assert kind_words(others)[Kind.CONVOY].endswith("queued for 5 ms or longer")


def test_one_event_is_lost_and_two_events_are() -> None:
    """
    A reason that an older gilscope does not know stands by its name.
    """
    assert "1 event lost because a table was full" == lost_words("table_full", 1)
    assert "2 waits or holds missing from the timeline" == lost_words("span", 2)
    assert "3 new_reason" == lost_words("new_reason", 3)
