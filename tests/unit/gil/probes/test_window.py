"""When a window of full mode is open, what it counts, and what that costs."""

import pytest

from gilscope.gil.probes.coverage import Coverage
from gilscope.model.gil import Tally
from support.gil.lock_holders import A, B, held_by, hold
from support.gil.lock_model import OTHER_COND, Process

# Opening and ending.


def test_nothing_is_probed_before_the_first_window(process: Process) -> None:
    """
    A window that was never open costs nothing and has seen nothing.
    """
    hold(process, 50)

    assert (False, True, False) == (
        process.window.is_open,
        process.window.can_open,
        process.window.is_lingering,
    )
    assert ({}, 0, 0) == (
        process.probes.places,
        process.window.traps(),
        process.window.observed_ns(process.now_ns),
    )
    assert (0, 0, 0) == (
        process.held().held_ns,
        process.held().finished.count,
        process.held().holding_ns,
    )


def test_ends_are_seen_before_beginnings_are(process: Process) -> None:
    """
    A hold whose end would not be seen must not begin: release sites are probed first.
    """
    process.window.open()

    assert ["on_release", "on_acquire"] == list(process.probes.places.values())


def test_beginnings_that_cannot_be_probed_open_no_window(process: Process) -> None:
    """
    What the kernel refuses is passed on; the window stays closed, and can be tried again.
    """
    process.probes.refusals["on_acquire"] = ProcessLookupError()

    with pytest.raises(ProcessLookupError):
        process.window.open()
    assert not process.window.is_open
    process.passes(10)
    assert 0 == process.window.observed_ns(process.now_ns)
    process.probes.refusals.clear()
    process.window.settle()
    process.probes.finish_closing()
    process.window.open()
    assert ["on_acquire", "on_release"] == sorted(process.probes.places.values())


def test_holds_inside_a_window_are_counted(process: Process) -> None:
    """
    Each with its whole time, for its thread and for its lock.
    """
    process.window.open()
    process.passes(5)
    hold(process, 100, A)
    process.passes(5)
    hold(process, 30, B)
    hold(process, 70, A)

    held = process.held()
    assert (200, 3, 200, 0) == (
        held.held_ns,
        held.finished.count,
        held.finished.sum_ns,
        held.holding_ns,
    )
    assert Tally(170, 2) == held_by(process.thread(A))
    assert Tally(30, 1) == held_by(process.thread(B))


def test_a_hold_in_flight_counts_up_to_now(process: Process) -> None:
    """
    Its time is there while it lasts, for a thread that has no record yet, too; not its number.
    """
    process.window.open()
    process.passes(5)
    process.take(A)
    process.passes(40)

    held = process.held()
    assert (40, 0, 40) == (held.held_ns, held.finished.count, held.holding_ns)
    assert Tally(40, 0) == held_by(process.thread(A))


def test_the_end_takes_the_probes_out(process: Process) -> None:
    """
    With no hold in flight all go; the next window waits until they are out.
    """
    process.window.open()
    process.passes(25)
    process.window.end()

    assert not process.window.is_open
    assert not process.window.is_lingering
    assert not process.window.can_open
    assert set(process.probes.places) == set(process.probes.closing)
    process.probes.finish_closing()
    assert process.window.can_open
    process.passes(25)
    assert 25 == process.window.observed_ns(process.now_ns)


def test_an_end_twice_is_one(process: Process) -> None:
    """
    Time after the first end does not count, and no probe is taken out again.
    """
    process.window.open()
    process.passes(25)
    process.window.end()
    process.passes(25)
    process.window.end()
    process.window.settle()

    assert 25 == process.window.observed_ns(process.now_ns)
    assert [] == [each for each in process.window.close() if each.done()]


def test_traps_after_the_end_count_nothing(process: Process) -> None:
    """
    Probes that are still on their way out see holds that are none of the window's.
    """
    process.window.open()
    process.passes(25)
    process.window.end()
    process.passes(1)
    hold(process, 50)

    assert 2 == process.window.traps()
    assert (0, 0) == (process.held().held_ns, process.held().finished.count)
    assert 0 == process.invalid_holders


def test_observed_time_is_that_of_all_windows(process: Process) -> None:
    """
    It grows while a window is open and stands still otherwise; one can ask about the past.
    """
    seen: list[int] = []
    told: list[Coverage] = []
    process.window.tell_coverage(told.append)
    for _ in range(3):
        process.window.open()
        assert (sum(seen[-1:]), process.now_ns) == process.window.coverage == told[-1]
        process.passes(20)
        seen.append(process.window.observed_ns(process.now_ns))
        assert seen[-1] - 5 == process.window.observed_ns(process.now_ns - 5)
        process.window.end()
        process.probes.finish_closing()
        process.passes(1000)
        assert seen[-1] == process.window.observed_ns(process.now_ns)
        assert (seen[-1], (1 << 64) - 1) == process.window.coverage == told[-1]

    assert [20, 40, 60] == seen
    assert 6 == len(told)


def test_closing_takes_everything_out(process: Process) -> None:
    """
    Also the probes that follow a hold on; it is said when all are out.
    """
    process.window.open()
    process.passes(5)
    process.take(A)
    process.passes(5)
    closing = process.window.close()

    assert set(process.probes.places) == set(process.probes.closing)
    assert 2 == len(closing)
    process.probes.finish_closing()
    assert {} == process.probes.places
    assert all(each.done() for each in closing)


# What the traps themselves add.


def test_the_traps_own_time_is_taken_from_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    From one that goes on as from one that has ended, and never more than there is.
    """
    process = Process(monkeypatch, inside_hold_ns=10)
    process.window.open()
    process.passes(5)
    process.take(A)
    process.passes(4)
    assert 0 == process.held().held_ns
    process.passes(26)
    assert 20 == process.held().held_ns
    process.release()

    assert (20, 20) == (process.held().held_ns, process.held().finished.sum_ns)


def test_nothing_is_taken_from_a_hold_whose_beginning_was_not_probed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    It has no trap in it yet.
    """
    process = Process(monkeypatch, inside_hold_ns=10)
    process.take(A)
    process.window.open()
    process.passes(30)

    assert 30 == process.held().held_ns
    process.window.end()
    assert 30 == process.held().held_ns


# Windows that use up their traps.


def test_a_window_ends_by_itself_when_its_traps_are_used_up(process: Process) -> None:
    """
    The next take ends it, with notice, and is not counted any more.
    """
    process.window.open(4)
    for _ in range(3):
        process.passes(10)
        hold(process, 5)
    process.passes(100)

    assert process.window.has_used_up
    assert process.window.is_open
    assert 1 == process.notices
    assert (2, 10) == (process.held().finished.count, process.held().held_ns)
    # Two holds with the pauses before them, and the last pause.
    assert 40 == process.window.observed_ns(process.now_ns)
    process.window.end()
    assert 40 == process.window.observed_ns(process.now_ns)
    assert not process.window.has_used_up


def test_traps_of_earlier_windows_are_not_charged_again(process: Process) -> None:
    """
    Each window may use up what it was allowed, from when it opened.
    """
    for _ in range(3):
        process.window.open(4)
        process.passes(1)
        for _ in range(2):
            hold(process, 5)
        assert not process.window.has_used_up
        process.window.end()
        process.probes.finish_closing()
        process.passes(1)

    assert 12 == process.window.traps()


def test_a_window_can_be_allowed_more(process: Process) -> None:
    """
    From what it has used so far.
    """
    process.window.open(4)
    process.passes(1)
    for _ in range(2):
        hold(process, 5)
    process.window.allow(process.window.traps() + 6)
    for _ in range(3):
        hold(process, 5)
    assert not process.window.has_used_up
    process.take(A)

    assert process.window.has_used_up


def test_a_hold_in_flight_when_traps_are_used_up_is_followed_on(process: Process) -> None:
    """
    Another interpreter's lock used up the last trap; this hold ends later, and is whole.
    """
    process.add_lock()
    process.window.open(3)
    process.passes(10)
    process.take(A)
    process.passes(10)
    hold(process, 5, B, OTHER_COND)
    process.passes(7)
    process.take(B, OTHER_COND)
    process.passes(100)
    assert process.window.has_used_up

    process.release()
    # Taken at 10, used up at 32, let go at 132.
    assert (22, 1, 122) == (
        process.held().held_ns,
        process.held().finished.count,
        process.held().finished.sum_ns,
    )
    assert (5, 0) == (process.held(OTHER_COND).held_ns, process.held(OTHER_COND).holding_ns)
