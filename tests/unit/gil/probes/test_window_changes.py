"""What changes while a window is open, and just while somebody samples."""

from collections.abc import Callable

import pytest

from gilscope.model.gil import Tally
from support.gil.lock_holders import A, B, held_by, hold
from support.gil.lock_model import COND, OTHER_COND, Process

# Threads that end, locks that appear.


def test_what_a_dead_thread_was_credited_with_stays_with_the_lock(process: Process) -> None:
    """
    Its number may become another thread's, which has not held anything.
    """
    process.take(A)
    process.window.open()
    process.passes(20)
    process.window.end()
    process.release()
    assert {A: 20} == dict(process.locks()[COND].credits_ns)
    process.window.forget_thread(A)
    process.window.forget_thread(B)

    assert {None: 20} == {tid: ns for tid, ns in process.locks()[COND].credits_ns.items() if ns}
    assert (20, ()) == (process.held().held_ns, process.totals().threads)


def test_a_lock_that_nobody_has_taken_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Python may have only just come to life; its first take says where the lock is.
    """
    process = Process(monkeypatch, cond=0)
    process.window.open()
    process.passes(5)
    assert (0, {}) == (process.window.first_cond, process.locks())
    process.take(A)
    process.passes(5)

    assert COND == process.window.first_cond
    assert (5, 5) == (process.held().held_ns, process.held().holding_ns)


def test_takes_of_a_lock_without_a_slot_are_counted_as_unknown(process: Process) -> None:
    """
    They are lost, which is said; the first lock has nothing of them.
    """
    process.window.open()
    process.passes(5)
    for _ in range(3):
        hold(process, 5, A, OTHER_COND)

    assert 3 == process.window.unknown_takes()
    assert [COND] == list(process.locks())
    assert 0 == process.held().held_ns


def test_a_lock_that_is_known_before_the_window_is_counted_like_the_first(
    process: Process,
) -> None:
    """
    A hold of it that was there counts from the window's beginning, and the locks do not mix.
    """
    process.add_lock()
    process.take(B, OTHER_COND)
    process.passes(5)
    process.window.open()
    process.passes(5)
    hold(process, 7, A)
    process.release(OTHER_COND)
    hold(process, 3, B, OTHER_COND)

    assert {COND, OTHER_COND} == set(process.locks())
    assert (7, 1) == (process.held().held_ns, process.held().finished.count)
    assert (15, 1) == (process.held(OTHER_COND).held_ns, process.held(OTHER_COND).finished.count)
    assert Tally(15, 1) == held_by(process.thread(B))


def test_a_lock_that_appears_in_a_window_counts_from_then_at_the_earliest(
    process: Process,
) -> None:
    """
    Its interpreter may be younger than the window: nothing before counts, whoever holds it.
    """
    process.window.open()
    process.passes(1000)
    process.take(B, OTHER_COND)
    process.passes(10)
    process.add_lock()
    process.passes(10)

    assert process.held(OTHER_COND).held_ns <= 10
    process.release(OTHER_COND)
    assert process.held(OTHER_COND).held_ns <= 10
    assert 0 == process.held(OTHER_COND).finished.count
    seen_ns = process.held(OTHER_COND).held_ns
    hold(process, 50, B, OTHER_COND)
    assert (seen_ns + 50, 1) == (
        process.held(OTHER_COND).held_ns,
        process.held(OTHER_COND).finished.count,
    )


# What happens just while somebody samples.


def _hand_on(process: Process) -> None:
    process.release()
    process.take(B)


_ENDS: dict[str, Callable[[Process], None]] = {"let go": Process.release, "handed on": _hand_on}


@pytest.mark.parametrize("looked_before", [True, False])
@pytest.mark.parametrize("end", _ENDS.values(), ids=_ENDS)
def test_a_hold_that_ends_while_somebody_looks_is_counted_to_its_end(
    process: Process, end: Callable[[Process], None], *, looked_before: bool
) -> None:
    """
    It was there before the window, and ends between the samples at the probes and at the memory.

    Counted only at the next look, it would come at once, and be more than the time between them.
    """
    process.take(A)
    process.window.open()
    process.passes(20)
    if looked_before:
        assert 20 == process.held().held_ns
    process.passes(10)
    process.on_look = lambda: end(process)

    assert 30 == process.held().held_ns
    assert 30 == process.held().held_ns
    assert 30 == held_by(process.thread(A)).ns


@pytest.mark.parametrize("when", ["on_look", "on_write"])
@pytest.mark.parametrize("end", _ENDS.values(), ids=_ENDS)
def test_a_hold_that_ends_with_the_window_is_counted_once(
    process: Process, end: Callable[[Process], None], when: str
) -> None:
    """
    It was there before the window, and ends while that is being ended: it is the first thread's.
    """
    process.take(A)
    process.window.open()
    process.passes(20)
    assert 20 == process.held().held_ns
    setattr(process, when, lambda: end(process))
    process.window.end()

    assert 20 == process.held().held_ns
    assert {A: 20} == {
        thread.tid: held.ns
        for thread in process.totals().threads
        if (held := held_by(thread)) != Tally()
    }
    process.passes(100)
    assert 20 == process.held().held_ns


def test_a_lock_that_is_taken_while_somebody_looks_was_free_before(process: Process) -> None:
    """
    That it is held by then says nothing of the time before.
    """
    process.window.open()
    process.passes(20)
    process.on_look = lambda: process.take(A)

    assert (0, 0) == (process.held().held_ns, process.held().holding_ns)
    process.passes(5)
    assert (5, 5) == (process.held().held_ns, process.held().holding_ns)


@pytest.mark.parametrize("when", ["on_look", "on_write"])
def test_a_lock_that_is_taken_with_the_windows_end_was_free_in_it(
    process: Process, when: str
) -> None:
    """
    The last sample is no different.
    """
    process.window.open()
    process.passes(20)
    setattr(process, when, lambda: process.take(A))
    process.window.end()

    assert 0 == process.held().held_ns
    process.passes(100)
    assert 0 == process.held().held_ns


def test_a_hold_that_seems_to_go_on_without_probes_is_dropped(process: Process) -> None:
    """
    A probe stored it after the last look at the window's end; its own end was not seen.
    """
    process.window.open()
    process.passes(20)
    process.window.end()
    process.probes.finish_closing()
    process.pretend_hold(A)
    process.passes(1000)
    process.window.open()
    process.passes(5)
    hold(process, 10, B)

    assert 0 == process.invalid_holders
    assert (10, 1, 10) == (
        process.held().held_ns,
        process.held().finished.count,
        process.held().finished.sum_ns,
    )
