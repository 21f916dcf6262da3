"""Holds that lie in a window, around it, or in several ones: each part counts once."""

from gilscope.model.gil import Tally
from support.gil.lock_holders import A, held_by, hold
from support.gil.lock_model import Process

# Holds at the edges.


def test_a_hold_that_outlasts_its_window_is_followed_to_its_end(process: Process) -> None:
    """
    Its duration is whole; held time counts up to the window's end only.
    """
    process.window.open()
    process.passes(10)
    process.take(A)
    process.passes(30)
    process.window.end()
    process.probes.finish_closing()

    assert process.window.is_lingering
    assert ["on_release"] == list(process.probes.places.values())
    process.passes(1000)
    process.window.settle()
    assert process.window.is_lingering
    assert (30, 1030, 0) == (
        process.held().held_ns,
        process.held().holding_ns,
        process.held().finished.count,
    )
    process.release()
    process.passes(1)
    assert (30, 0, 1, 1030) == (
        process.held().held_ns,
        process.held().holding_ns,
        process.held().finished.count,
        process.held().finished.sum_ns,
    )
    assert Tally(30, 1) == held_by(process.thread(A))
    assert 1 == process.notices
    process.window.settle()
    assert not process.window.is_lingering
    process.probes.finish_closing()
    assert {} == process.probes.places


def test_a_hold_that_was_there_before_counts_from_the_windows_beginning(process: Process) -> None:
    """
    Seen in the lock's memory while it lasts and by the probe at its end; it is no hold of ours.
    """
    process.take(A)
    process.passes(500)
    process.window.open()
    process.passes(20)

    assert (20, 20, 0) == (
        process.held().held_ns,
        process.held().holding_ns,
        process.held().finished.count,
    )
    assert Tally(20, 0) == held_by(process.thread(A))
    process.passes(10)
    process.release()
    process.passes(100)
    assert (30, 0, 0) == (
        process.held().held_ns,
        process.held().holding_ns,
        process.held().finished.count,
    )
    assert Tally(30, 0) == held_by(process.thread(A))


def test_a_hold_around_the_whole_window_is_credited(process: Process) -> None:
    """
    No probe has seen it: neither its beginning nor its end is in the window.
    """
    process.take(A)
    process.passes(500)
    process.window.open()
    process.passes(20)
    process.window.end()

    assert not process.window.is_lingering
    process.passes(500)
    process.release()
    process.passes(500)
    assert (20, 0, 0) == (
        process.held().held_ns,
        process.held().holding_ns,
        process.held().finished.count,
    )
    assert Tally(20, 0) == held_by(process.thread(A))


def test_a_lock_that_stays_free_is_credited_to_nobody(process: Process) -> None:
    """
    Untouched is not held: the lock's memory decides.
    """
    hold(process, 100)
    process.window.open()
    process.passes(20)
    process.window.end()

    assert (0, {}) == (process.held().held_ns, dict(process.threads))


def test_an_unreadable_lock_is_held_until_somebody_looked(process: Process) -> None:
    """
    A process that ends in a hold which no probe has seen: what was certain stays.
    """
    process.take(A)
    process.window.open()
    process.passes(20)
    assert 20 == process.held().held_ns
    process.passes(30)
    process.ends()
    process.window.close()

    assert (20, 0) == (process.held().held_ns, process.held().holding_ns)
    assert Tally(20, 0) == held_by(process.thread(A))


def test_an_unreadable_lock_that_nobody_looked_at_counts_nothing(process: Process) -> None:
    """
    What cannot be known is not counted, nor is what was seen in an earlier window.
    """
    process.take(A)
    process.window.open()
    process.passes(20)
    assert 20 == process.held().held_ns
    process.window.end()
    process.probes.finish_closing()
    process.passes(20)
    process.window.open()
    process.passes(20)
    process.ends()
    process.window.close()

    assert 20 == process.held().held_ns


def test_a_holder_that_cannot_be_named_is_nobody(process: Process) -> None:
    """
    The lock's total has the time; no thread's has.
    """
    process.take(A)
    process.has_named_threads = False
    process.window.open()
    process.passes(20)

    assert (20, ()) == (process.held().held_ns, process.totals().threads)
    process.window.end()
    assert (20, ()) == (process.held().held_ns, process.totals().threads)


def test_a_process_that_ends_in_a_hold_has_it_to_the_end(process: Process) -> None:
    """
    The kernel finishes it at the thread's exit, and nothing is credited besides.
    """
    process.window.open()
    process.passes(10)
    process.take(A)
    process.passes(30)
    process.ends()
    process.passes(1000)
    process.window.close()

    assert (30, 0, 1) == (
        process.held().held_ns,
        process.held().holding_ns,
        process.held().finished.count,
    )


def test_a_window_ends_when_the_program_is_replaced(process: Process) -> None:
    """
    Observed time ends with the exec, not when the agent learns of it.
    """
    process.window.open()
    process.passes(10)
    process.execs()
    process.passes(1000)

    assert process.window.has_used_up
    assert 10 == process.window.observed_ns(process.now_ns)
    process.window.end()
    assert 10 == process.window.observed_ns(process.now_ns)


# A hold over several windows.


def test_a_hold_over_three_windows_has_a_part_in_each(process: Process) -> None:
    """
    The first parts are credited once each, the last is counted at its end; its duration is whole.
    """
    process.window.open()
    process.passes(10)
    process.take(A)
    expected_ns = 0
    for number in range(3):
        process.passes(20)
        expected_ns += 20
        assert expected_ns == process.held().held_ns
        assert Tally(expected_ns, 0) == held_by(process.thread(A))
        if number < 2:
            process.window.end()
            process.probes.finish_closing()
            process.passes(1000)
            assert expected_ns == process.held().held_ns
            assert process.window.is_lingering
            process.window.open()
            assert expected_ns == process.held().held_ns
    process.release()
    process.passes(3)

    assert (60, 1, 2060) == (
        process.held().held_ns,
        process.held().finished.count,
        process.held().finished.sum_ns,
    )
    assert Tally(60, 1) == held_by(process.thread(A))
    assert 0 == process.invalid_holders


def test_release_sites_are_probed_once_while_a_hold_is_followed_on(process: Process) -> None:
    """
    A window that opens meanwhile uses the probes that are there.
    """
    process.window.open()
    process.passes(10)
    process.take(A)
    process.window.end()
    process.probes.finish_closing()
    process.window.open()

    assert ["on_acquire", "on_release"] == sorted(process.probes.places.values())


def test_a_hold_that_ended_between_two_windows_is_not_credited(process: Process) -> None:
    """
    It was counted whole at its end.
    """
    process.window.open()
    process.passes(10)
    process.take(A)
    process.passes(20)
    process.window.end()
    process.probes.finish_closing()
    process.passes(5)
    process.release()
    process.passes(5)
    process.window.open()
    process.passes(5)

    assert (20, 1) == (process.held().held_ns, process.held().finished.count)
