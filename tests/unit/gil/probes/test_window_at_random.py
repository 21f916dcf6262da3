"""Whatever happens in windows, each hold counts once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from support.gil.lock_holders import held_by
from support.gil.lock_model import COND, OTHER_COND, Hold, Process


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
            held = held_by(thread)
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
