"""A window that was closed by the keeper, because the agent was silent for too long."""

import pytest

from gilscope.model.gil import Tally
from support.gil.lock_holders import A, B, held_by, hold
from support.gil.lock_model import Process


def test_what_was_counted_before_stays(process: Process) -> None:
    """
    The window has covered the time until the keeper ended it, and no hold after that counts.
    """
    process.window.open()
    process.passes(10)
    hold(process, 100, A)
    process.lapses()
    hold(process, 500, B)
    process.passes(1000)

    assert process.window.has_used_up
    assert 110 == process.window.observed_ns(process.now_ns)
    process.window.end()
    assert (False, False) == (process.window.is_open, process.window.is_lingering)
    assert 110 == process.window.observed_ns(process.now_ns)
    assert (100, 1, 0) == _held(process)
    assert Tally(100, 1) == held_by(process.thread(A))


def test_a_hold_in_flight_counts_up_to_there(process: Process) -> None:
    """
    It ends unseen, so it is no finished one; and nothing is taken back in the next window.
    """
    process.window.open()
    process.passes(10)
    process.take(A)
    process.passes(40)
    process.lapses()
    process.passes(300)
    process.release()
    process.passes(50)
    process.window.end()

    assert (40, 0, 0) == _held(process)
    assert Tally(40, 0) == held_by(process.thread(A))
    process.probes.finish_closing()
    process.window.open()
    hold(process, 7, B)
    assert (47, 1, 0) == _held(process)
    assert Tally(40, 0) == held_by(process.thread(A))


def test_a_hold_that_nobody_saw_begin_counts_as_far_as_it_was_seen(process: Process) -> None:
    """
    Who has the lock when the agent wakes up need not have had it when the window was closed.
    """
    process.take(A)
    process.window.open()
    process.passes(30)
    assert 30 == process.held().held_ns
    process.passes(20)
    process.lapses()
    process.release()
    process.take(B)
    process.passes(400)
    process.window.end()

    assert 50 == process.window.observed_ns(process.now_ns)
    assert (30, 0, 0) == _held(process)
    assert {A: Tally(30, 0)} == {thread.tid: held_by(thread) for thread in process.totals().threads}


def test_a_hold_that_was_followed_on_is_given_up(process: Process) -> None:
    """
    It outlasted its window, and its end is not seen any more: it has counted up to the window's.
    """
    process.window.open()
    process.passes(10)
    process.take(A)
    process.passes(25)
    process.window.end()
    assert process.window.is_lingering
    process.lapses()
    process.passes(100)
    process.window.give_up_lingering()

    assert not process.window.is_lingering
    assert (25, 0, 0) == _held(process)
    process.probes.finish_closing()
    assert process.window.can_open


def test_nothing_is_given_up_where_nothing_was_closed(process: Process) -> None:
    """
    A window that is open, and one that was never open, stay as they are.
    """
    process.window.give_up_lingering()
    process.window.open()
    process.passes(10)
    process.take(A)
    process.passes(25)
    process.window.give_up_lingering()

    assert process.window.is_open
    assert (25, 0, 25) == _held(process)


@pytest.mark.parametrize("traps", [1, 1000])
def test_a_window_that_used_up_its_traps_before(process: Process, traps: int) -> None:
    """
    Whichever ended it first: the time after that is not covered.
    """
    process.window.open(allowed_traps=traps)
    process.passes(10)
    hold(process, 20, A)
    process.passes(5)
    hold(process, 20, B)
    before_ns = process.window.observed_ns(process.now_ns)
    process.lapses()
    process.passes(100)
    process.window.end()

    assert before_ns == process.window.observed_ns(process.now_ns)


def _held(process: Process) -> tuple[int, int, int]:
    held = process.held()
    return held.held_ns, held.finished.count, held.holding_ns
