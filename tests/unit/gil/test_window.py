"""When holds count, and that each counts once, whatever comes between."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from gilscope.model import Tally, ThreadTotals
from unit.gil.lock_model import COND, OTHER_COND, Hold, Process

_A, _B = 201, 202


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    """A process with one lock that is free, and no window yet."""
    return Process(monkeypatch)


def _held_by(thread: ThreadTotals) -> Tally:
    assert thread.held is not None
    return thread.held


def _hold(process: Process, ns: int, tid: int = _A, cond: int = COND) -> None:
    process.take(tid, cond)
    process.passes(ns)
    process.release(cond)


# Opening and ending.


def test_nothing_is_probed_before_the_first_window(process: Process) -> None:
    """
    A window that was never open costs nothing and has seen nothing.
    """
    _hold(process, 50)

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
    _hold(process, 100, _A)
    process.passes(5)
    _hold(process, 30, _B)
    _hold(process, 70, _A)

    held = process.held()
    assert (200, 3, 200, 0) == (
        held.held_ns,
        held.finished.count,
        held.finished.sum_ns,
        held.holding_ns,
    )
    assert Tally(170, 2) == _held_by(process.thread(_A))
    assert Tally(30, 1) == _held_by(process.thread(_B))


def test_a_hold_in_flight_counts_up_to_now(process: Process) -> None:
    """
    Its time is there while it lasts, for a thread that has no record yet, too; not its number.
    """
    process.window.open()
    process.passes(5)
    process.take(_A)
    process.passes(40)

    held = process.held()
    assert (40, 0, 40) == (held.held_ns, held.finished.count, held.holding_ns)
    assert Tally(40, 0) == _held_by(process.thread(_A))


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
    _hold(process, 50)

    assert 2 == process.window.traps()
    assert (0, 0) == (process.held().held_ns, process.held().finished.count)
    assert 0 == process.invalid_holders


def test_observed_time_is_that_of_all_windows(process: Process) -> None:
    """
    It grows while a window is open and stands still otherwise; one can ask about the past.
    """
    seen = []
    for _ in range(3):
        process.window.open()
        process.passes(20)
        seen.append(process.window.observed_ns(process.now_ns))
        assert seen[-1] == process.window.observed_at_most_ns(process.now_ns)
        assert seen[-1] - 5 == process.window.observed_ns(process.now_ns - 5)
        process.window.end()
        process.probes.finish_closing()
        process.passes(1000)
        assert seen[-1] == process.window.observed_ns(process.now_ns)
        assert seen[-1] == process.window.observed_at_most_ns(process.now_ns)

    assert [20, 40, 60] == seen


def test_closing_takes_everything_out(process: Process) -> None:
    """
    Also the probes that follow a hold on; it is said when all are out.
    """
    process.window.open()
    process.passes(5)
    process.take(_A)
    process.passes(5)
    closing = process.window.close()

    assert set(process.probes.places) == set(process.probes.closing)
    assert 2 == len(closing)
    process.probes.finish_closing()
    assert {} == process.probes.places
    assert all(each.done() for each in closing)


# Holds at the edges.


def test_a_hold_that_outlasts_its_window_is_followed_to_its_end(process: Process) -> None:
    """
    Its duration is whole; held time counts up to the window's end only.
    """
    process.window.open()
    process.passes(10)
    process.take(_A)
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
    assert Tally(30, 1) == _held_by(process.thread(_A))
    assert 1 == process.notices
    process.window.settle()
    assert not process.window.is_lingering
    process.probes.finish_closing()
    assert {} == process.probes.places


def test_a_hold_that_was_there_before_counts_from_the_windows_beginning(process: Process) -> None:
    """
    Seen in the lock's memory while it lasts and by the probe at its end; it is no hold of ours.
    """
    process.take(_A)
    process.passes(500)
    process.window.open()
    process.passes(20)

    assert (20, 20, 0) == (
        process.held().held_ns,
        process.held().holding_ns,
        process.held().finished.count,
    )
    assert Tally(20, 0) == _held_by(process.thread(_A))
    process.passes(10)
    process.release()
    process.passes(100)
    assert (30, 0, 0) == (
        process.held().held_ns,
        process.held().holding_ns,
        process.held().finished.count,
    )
    assert Tally(30, 0) == _held_by(process.thread(_A))


def test_a_hold_around_the_whole_window_is_credited(process: Process) -> None:
    """
    No probe has seen it: neither its beginning nor its end is in the window.
    """
    process.take(_A)
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
    assert Tally(20, 0) == _held_by(process.thread(_A))


def test_a_lock_that_stays_free_is_credited_to_nobody(process: Process) -> None:
    """
    Untouched is not held: the lock's memory decides.
    """
    _hold(process, 100)
    process.window.open()
    process.passes(20)
    process.window.end()

    assert (0, {}) == (process.held().held_ns, dict(process.threads))


def test_an_unreadable_lock_is_held_until_somebody_looked(process: Process) -> None:
    """
    A process that ends in a hold which no probe has seen: what was certain stays.
    """
    process.take(_A)
    process.window.open()
    process.passes(20)
    assert 20 == process.held().held_ns
    process.passes(30)
    process.ends()
    process.window.close()

    assert (20, 0) == (process.held().held_ns, process.held().holding_ns)
    assert Tally(20, 0) == _held_by(process.thread(_A))


def test_an_unreadable_lock_that_nobody_looked_at_counts_nothing(process: Process) -> None:
    """
    What cannot be known is not counted, nor is what was seen in an earlier window.
    """
    process.take(_A)
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
    process.take(_A)
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
    process.take(_A)
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


# What the traps themselves add.


def test_the_traps_own_time_is_taken_from_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    From one that goes on as from one that has ended, and never more than there is.
    """
    process = Process(monkeypatch, inside_hold_ns=10)
    process.window.open()
    process.passes(5)
    process.take(_A)
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
    process.take(_A)
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
        _hold(process, 5)
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
            _hold(process, 5)
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
        _hold(process, 5)
    process.window.allow(process.window.traps() + 6)
    for _ in range(3):
        _hold(process, 5)
    assert not process.window.has_used_up
    process.take(_A)

    assert process.window.has_used_up


def test_a_hold_in_flight_when_traps_are_used_up_is_followed_on(process: Process) -> None:
    """
    Another interpreter's lock used up the last trap; this hold ends later, and is whole.
    """
    process.add_lock()
    process.window.open(3)
    process.passes(10)
    process.take(_A)
    process.passes(10)
    _hold(process, 5, _B, OTHER_COND)
    process.passes(7)
    process.take(_B, OTHER_COND)
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


# A hold over several windows.


def test_a_hold_over_three_windows_has_a_part_in_each(process: Process) -> None:
    """
    The first parts are credited once each, the last is counted at its end; its duration is whole.
    """
    process.window.open()
    process.passes(10)
    process.take(_A)
    expected_ns = 0
    for number in range(3):
        process.passes(20)
        expected_ns += 20
        assert expected_ns == process.held().held_ns
        assert Tally(expected_ns, 0) == _held_by(process.thread(_A))
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
    assert Tally(60, 1) == _held_by(process.thread(_A))
    assert 0 == process.invalid_holders


def test_release_sites_are_probed_once_while_a_hold_is_followed_on(process: Process) -> None:
    """
    A window that opens meanwhile uses the probes that are there.
    """
    process.window.open()
    process.passes(10)
    process.take(_A)
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
    process.take(_A)
    process.passes(20)
    process.window.end()
    process.probes.finish_closing()
    process.passes(5)
    process.release()
    process.passes(5)
    process.window.open()
    process.passes(5)

    assert (20, 1) == (process.held().held_ns, process.held().finished.count)


# Threads that end, locks that appear.


def test_what_a_dead_thread_was_credited_with_stays_with_the_lock(process: Process) -> None:
    """
    Its number may become another thread's, which has not held anything.
    """
    process.take(_A)
    process.window.open()
    process.passes(20)
    process.window.end()
    process.release()
    assert {_A: 20} == dict(process.locks()[COND].credits_ns)
    process.window.forget_thread(_A)
    process.window.forget_thread(_B)

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
    process.take(_A)
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
        _hold(process, 5, _A, OTHER_COND)

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
    process.take(_B, OTHER_COND)
    process.passes(5)
    process.window.open()
    process.passes(5)
    _hold(process, 7, _A)
    process.release(OTHER_COND)
    _hold(process, 3, _B, OTHER_COND)

    assert {COND, OTHER_COND} == set(process.locks())
    assert (7, 1) == (process.held().held_ns, process.held().finished.count)
    assert (15, 1) == (process.held(OTHER_COND).held_ns, process.held(OTHER_COND).finished.count)
    assert Tally(15, 1) == _held_by(process.thread(_B))


def test_a_lock_that_appears_in_a_window_counts_from_then_at_the_earliest(
    process: Process,
) -> None:
    """
    Its interpreter may be younger than the window: nothing before counts, whoever holds it.
    """
    process.window.open()
    process.passes(1000)
    process.take(_B, OTHER_COND)
    process.passes(10)
    process.add_lock()
    process.passes(10)

    assert process.held(OTHER_COND).held_ns <= 10
    process.release(OTHER_COND)
    assert process.held(OTHER_COND).held_ns <= 10
    assert 0 == process.held(OTHER_COND).finished.count
    seen_ns = process.held(OTHER_COND).held_ns
    _hold(process, 50, _B, OTHER_COND)
    assert (seen_ns + 50, 1) == (
        process.held(OTHER_COND).held_ns,
        process.held(OTHER_COND).finished.count,
    )


# What happens just while somebody looks.


def _hand_on(process: Process) -> None:
    process.release()
    process.take(_B)


_ENDS: dict[str, Callable[[Process], None]] = {"let go": Process.release, "handed on": _hand_on}


@pytest.mark.parametrize("end", _ENDS.values(), ids=_ENDS)
def test_a_hold_that_ends_while_somebody_looks_does_not_run_back(
    process: Process, end: Callable[[Process], None]
) -> None:
    """
    It was there before the window, and ends between the looks at the probes and at the memory.
    """
    process.take(_A)
    process.window.open()
    process.passes(20)
    assert 20 == process.held().held_ns
    process.passes(10)
    process.on_look = lambda: end(process)

    assert 20 <= process.held().held_ns <= 30
    assert 30 == process.held().held_ns
    assert 30 == _held_by(process.thread(_A)).ns


@pytest.mark.parametrize("when", ["on_look", "on_write"])
@pytest.mark.parametrize("end", _ENDS.values(), ids=_ENDS)
def test_a_hold_that_ends_with_the_window_is_counted_once(
    process: Process, end: Callable[[Process], None], when: str
) -> None:
    """
    It was there before the window, and ends while that is being ended: it is the first thread's.
    """
    process.take(_A)
    process.window.open()
    process.passes(20)
    assert 20 == process.held().held_ns
    setattr(process, when, lambda: end(process))
    process.window.end()

    assert 20 == process.held().held_ns
    assert {_A: 20} == {
        thread.tid: held.ns
        for thread in process.totals().threads
        if (held := _held_by(thread)) != Tally()
    }
    process.passes(100)
    assert 20 == process.held().held_ns


def test_a_lock_that_is_taken_while_somebody_looks_was_free_before(process: Process) -> None:
    """
    That it is held by then says nothing of the time before.
    """
    process.window.open()
    process.passes(20)
    process.on_look = lambda: process.take(_A)

    assert (0, 0) == (process.held().held_ns, process.held().holding_ns)
    process.passes(5)
    assert (5, 5) == (process.held().held_ns, process.held().holding_ns)


@pytest.mark.parametrize("when", ["on_look", "on_write"])
def test_a_lock_that_is_taken_with_the_windows_end_was_free_in_it(
    process: Process, when: str
) -> None:
    """
    The last look is no different.
    """
    process.window.open()
    process.passes(20)
    setattr(process, when, lambda: process.take(_A))
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
    process.pretend_hold(_A)
    process.passes(1000)
    process.window.open()
    process.passes(5)
    _hold(process, 10, _B)

    assert 0 == process.invalid_holders
    assert (10, 1, 10) == (
        process.held().held_ns,
        process.held().finished.count,
        process.held().finished.sum_ns,
    )


# Everything at once.


@dataclass
class _Truth:
    """What really happened, and what must come out."""

    process: Process
    windows: list[list[int | None]] = field(default_factory=list)
    last: dict[object, int] = field(default_factory=dict)
    last_ns: int = 0

    def part_ns(self, hold: Hold) -> int:
        """Return how much of *hold* lies in windows until now."""
        now_ns = self.process.now_ns
        return sum(
            hold.part_ns(from_ns or 0, now_ns if until_ns is None else until_ns)
            for from_ns, until_ns in self.windows
        )

    def is_counted(self, hold: Hold) -> bool:
        """Return whether *hold* is over and began in a window."""
        return hold.until_ns is not None and any(
            (from_ns or 0) <= hold.from_ns < (hold.from_ns + 1 if until_ns is None else until_ns)
            for from_ns, until_ns in self.windows
        )

    def note_used_up(self) -> None:
        """Note whether the window has ended by itself, with the event that is just over."""
        if self.windows and self.windows[-1][1] is None and self.process.window.has_used_up:
            self.windows[-1][1] = self.process.now_ns

    def assert_told(self, inside_hold_ns: int) -> None:
        """Assert that everything is as it was, and that nothing has run back."""
        process, totals = self.process, self.process.totals()
        now: dict[object, int] = {}
        for gil in totals.gils:
            holds = [hold for hold in process.holds if hold.cond == gil.gil.cond]
            counted = [hold for hold in holds if self.is_counted(hold)]
            assert gil.holds is not None
            assert len(counted) == gil.holds.finished.count
            slack_ns = inside_hold_ns * (len(counted) + 1)
            really_ns = sum(map(self.part_ns, holds))
            assert really_ns - slack_ns <= gil.holds.held_ns <= really_ns
            whole_ns = sum((hold.until_ns or 0) - hold.from_ns for hold in counted)
            assert whole_ns - slack_ns <= gil.holds.finished.sum_ns <= whole_ns
            now["held", gil.gil.cond] = gil.holds.held_ns
        for thread in totals.threads:
            holds = [hold for hold in process.holds if hold.tid == thread.tid]
            counted = [hold for hold in holds if self.is_counted(hold)]
            really_ns = sum(map(self.part_ns, holds))
            held = _held_by(thread)
            assert len(counted) == held.count
            assert really_ns - inside_hold_ns * (len(counted) + 1) <= held.ns <= really_ns
            now["held by", thread.tid] = held.ns
        now["observed"] = process.window.observed_ns(process.now_ns)
        assert now["observed"] == sum(
            (process.now_ns if until_ns is None else until_ns) - (from_ns or 0)
            for from_ns, until_ns in self.windows
        )
        passed_ns = process.now_ns - self.last_ns
        for name, value in now.items():
            # What the traps add is taken off a hold once, in the last window that it is in.
            assert 0 <= value - self.last.get(name, 0) <= passed_ns + inside_hold_ns, name
        self.last, self.last_ns = {**self.last, **now}, process.now_ns


@pytest.mark.parametrize("inside_hold_ns", [0, 7])
@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_each_hold_counts_once(  # noqa: C901 - so many things can happen
    monkeypatch: pytest.MonkeyPatch, seed: int, inside_hold_ns: int
) -> None:
    """
    Threads, windows, allowances and late probes at random: all totals are right at each instant.
    """
    chance = Random(seed)  # noqa: S311 - the same each time
    process = Process(monkeypatch, inside_hold_ns=inside_hold_ns)
    process.add_lock()
    truth = _Truth(process, last_ns=process.now_ns)
    window = process.window
    holders: dict[int, int | None] = {COND: None, OTHER_COND: None}
    tids = {COND: [1, 2, 3], OTHER_COND: [11, 12]}
    next_tid = 100

    def take_or_release() -> None:
        cond = chance.choice([COND, COND, OTHER_COND])
        if holders[cond] is None:
            holders[cond] = chance.choice(tids[cond])
            process.take(holders[cond] or 0, cond)
        else:
            holders[cond] = None
            process.release(cond)

    def open_or_end() -> None:
        if window.is_open:
            window.end()
            if truth.windows[-1][1] is None:
                truth.windows[-1][1] = process.now_ns
        elif window.can_open:
            window.open(chance.choice([None, 3, 10, 30]))
            truth.windows.append([process.now_ns, None])

    def allow() -> None:
        if window.is_open and not window.has_used_up:
            window.allow(window.traps() + chance.randint(1, 20))

    def replace_a_thread() -> None:
        nonlocal next_tid
        cond = chance.choice([COND, OTHER_COND])
        tid = tids[cond][0]
        if holders[cond] != tid:
            next_tid += 1
            process.threads.pop(tid, None)
            window.forget_thread(tid)
            tids[cond] = [*tids[cond][1:], next_tid]

    events: list[Callable[[], None]] = [
        *[take_or_release] * 12,
        *[open_or_end] * 2,
        allow,
        window.settle,
        *[process.probes.finish_closing] * 2,
        replace_a_thread,
    ]
    for _ in range(250):
        process.passes(chance.choice([1, 3, 10, 100, 1000]))
        chance.choice(events)()
        truth.note_used_up()
        truth.assert_told(inside_hold_ns)
    window.close()
    process.probes.finish_closing()

    assert 0 == process.invalid_holders
    assert {} == process.probes.places
    assert len(truth.windows) > 3
