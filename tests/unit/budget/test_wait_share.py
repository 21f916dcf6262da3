"""In which part of the time the waits of a process are seen."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from gilscope.budget.token_bucket import Budget, Usage
from gilscope.budget.wait_share import WINDOW_NS, WaitSchedule, WaitShare

_S = 1_000_000_000
_MS = 1_000_000


class _Process:
    """A process that uses one core, whose waits cost as much as a test says if all are seen."""

    def __init__(self) -> None:
        self.usage = Usage(0, 0, 0, 0)
        self.share = WaitShare(Budget(0.01), self.usage)
        self.changes = 0

    def run(self, seconds: int, traps_ms: float, *, walks_ms: float = 0) -> float:
        """Return what its waits cost a second; the costs that are given are per second."""
        before = self.usage
        for _ in range(seconds):
            traps_ns = int(self.share.share * traps_ms * _MS)
            walking_ns = int(walks_ms * _MS)
            self.usage = Usage(
                at_ns=self.usage.at_ns + _S,
                cpu_ns=self.usage.cpu_ns + _S + traps_ns + walking_ns,
                cost_ns=self.usage.cost_ns + traps_ns + walking_ns,
                window_cost_ns=0,
                walking_ns=self.usage.walking_ns + walking_ns,
            )
            if self.share.look(self.usage):
                self.changes += 1
                self.share.restart(self.usage)
        cost_ns = self.usage.cost_ns - before.cost_ns - seconds * int(walks_ms * _MS)
        return cost_ns / _MS / seconds


def _random(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - nobody has to be kept from guessing


def test_all_waits_are_seen_as_long_as_they_cost_no_more_than_the_budget() -> None:
    """
    By their traps alone: what stacks cost is for their own share to say.
    """
    process = _Process()

    assert 9.9 == pytest.approx(process.run(120, 9.9, walks_ms=20), abs=0.01)
    assert (1.0, 0) == (process.share.share, process.changes)


@pytest.mark.parametrize("traps_ms", [12.1, 50, 100])
def test_waits_that_cost_more_get_most_of_the_budget(traps_ms: float) -> None:
    """
    Six of the ten milliseconds that a second brings in, however much there is to see.
    """
    process = _Process()
    process.run(60, traps_ms)

    assert 6 == pytest.approx(process.run(600, traps_ms), rel=0.03)
    assert process.changes <= 2


def test_the_share_falls_at_once_and_rises_slowly() -> None:
    """
    Waits that have become cheap are all seen again, after some minutes of being sure.
    """
    process = _Process()
    process.run(2, 100)
    assert 0.06 == process.share.share

    process.run(60, 12)
    assert 0.06 < process.share.share < 0.25
    process.run(300, 12)
    assert 0.4 < process.share.share <= 0.5
    process.run(40, 7)
    assert process.share.share < 1.0
    process.run(40, 7)
    assert 1.0 == process.share.share


def test_a_little_more_or_less_changes_nothing() -> None:
    """
    Each change has all figures read.
    """
    process = _Process()
    process.run(60, 50)
    changes = process.changes
    for _ in range(20):
        process.run(20, 46)
        process.run(20, 54)

    assert changes == process.changes


def test_an_idle_process_is_asked_nothing() -> None:
    """
    Up to twenty seconds; and never where windows are open.
    """
    process = _Process()
    process.run(4, 0)
    due_ns = process.share.due_ns

    assert process.share.put_off(due_ns)
    assert due_ns + 4 * _S == process.share.due_ns
    assert not process.share.put_off(process.usage.at_ns + 30 * _S)
    process.run(60, 50)
    assert not process.share.put_off(process.share.due_ns)


def _begins_ns(share: float, seconds: int, seed: int = 1, late_ns: int = 0) -> list[int]:
    schedule, begins_ns = WaitSchedule(_random(seed)), []
    schedule.begin(0, 0, share)
    while schedule.from_ns < seconds * _S:
        begins_ns.append(schedule.from_ns + late_ns)
        schedule.advance(begins_ns[-1], share)
    return begins_ns


@pytest.mark.parametrize("share", [0.02, 0.13, 0.5])
def test_windows_cover_what_the_share_says_in_a_minute_too(share: float) -> None:
    """
    One in each spell, at a random time in it, none in the other's way.
    """
    begins_ns = _begins_ns(share, 3600)

    windows = Counter(at_ns // (60 * _S) for at_ns in begins_ns)
    in_a_minute = 60 * _S * share / WINDOW_NS
    assert all(abs(windows[minute] - in_a_minute) <= 2 for minute in range(60))
    gaps_ns = [after - before - WINDOW_NS for before, after in pairwise(begins_ns)]
    assert min(gaps_ns) >= 100 * _MS
    assert len(set(gaps_ns)) > 0.99 * len(gaps_ns)


def test_windows_meet_every_phase_of_whatever_repeats_itself() -> None:
    """
    With the periods that programs have.
    """
    begins_ns = _begins_ns(0.13, 4 * 3600)

    for period_ms in (20, 50, 250, 1000, 2000, 5000, 10_000, 60_000):
        phases = Counter(at_ns % (period_ms * _MS) * 10 // (period_ms * _MS) for at_ns in begins_ns)
        expected = len(begins_ns) / 10
        deviation = sum((phases[phase] - expected) ** 2 / expected for phase in range(10))
        # Nine degrees of freedom: more than that once in a thousand times.
        assert deviation < 27.9, f"{period_ms} ms: {sorted(phases.items())}"


def test_a_window_that_begins_late_puts_off_no_other() -> None:
    """
    Of an agent that wakes late each time; nothing is made up for where it was stopped.
    """
    in_time, late = (_begins_ns(0.13, 600, late_ns=late_ns) for late_ns in (0, 80 * _MS))
    assert [at_ns + 80 * _MS for at_ns in in_time] == late


@pytest.mark.parametrize(("stopped_s", "missed"), [(0, 0), (4, 0), (11, 1), (95, 17), (3600, 718)])
def test_nothing_is_made_up_for_where_the_agent_was_stopped(stopped_s: int, missed: int) -> None:
    """
    The next window comes in the spell that follows; the spells that had none are told.
    """
    schedule = WaitSchedule(_random(1))
    schedule.begin(0, 0, 0.1)

    assert missed == schedule.advance(stopped_s * _S, 0.1)
    spell_ns = max(5 * _S, stopped_s * _S - 5 * _S)
    assert spell_ns <= schedule.from_ns < spell_ns + 5 * _S
