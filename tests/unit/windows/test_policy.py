"""Windows are opened and ended as the governor says."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import cast

import pytest

from gilscope.budget.governor import Budget, Grant, Usage
from gilscope.budget.pace import Pace
from gilscope.budget.prices import Prices
from gilscope.budget.trap_costs import TrapCosts
from gilscope.windows import policy as windows_module
from gilscope.windows.plan import WindowPlan
from gilscope.windows.policy import Windows
from gilscope.windows.window import ProbeWindow, TrapPrices

_MS = 1_000_000
_COSTS = TrapCosts(
    full_ns=1000.0,
    stepped_ns=20_000.0,
    contention_ns=2000.0,
    inside_hold_ns=500,
    inside_stepped_hold_ns=9_000,
    sharing_ns=100.0,
    is_measured=True,
)
_NEVER_NS = 1 << 62


@dataclass
class _Window:
    """Notes what it is told."""

    is_open: bool = False
    has_used_up: bool = False
    can_open: bool = True
    unseen_ns: int = 0
    cost_so_far_ns: int = 4000
    told: list[object] = field(default_factory=list)

    def traps(self) -> int:
        return 3

    def cost_ns(self) -> int:
        return self.cost_so_far_ns

    def take_unseen_ns(self) -> int:
        return self.unseen_ns

    def observed_ns(self, _at_ns: int) -> int:
        return 2000

    def open_for_good(self, prices: TrapPrices) -> None:
        self.is_open = True
        self.told.append(prices)

    def open(self, prices: TrapPrices, allowance_ns: int) -> None:
        self.is_open = True
        self.told.append((prices, allowance_ns))

    def allow(self, _prices: TrapPrices, allowance_ns: int) -> None:
        self.told.append(allowance_ns)

    def end(self) -> None:
        self.is_open = False
        self.has_used_up = False
        self.told.append("end")

    def close(self) -> list[object]:
        if self.is_open:
            self.end()
        return []


class _Governor:
    """Decides as the test has put down."""

    def __init__(self, budget: Budget, _random: Random, pace: Pace) -> None:
        self.budget = budget
        self.pace = pace
        self.is_endless = False
        self.due_ns = _NEVER_NS
        self.decisions: list[Grant | None] = []
        self.asked: list[bool] = []
        _made.append(self)

    def begin_open(self, _usage: Usage) -> Grant:
        return Grant(20 * _MS, None)

    def step(self, _usage: Usage, *, is_open: bool) -> Grant | None:
        self.asked.append(is_open)
        return self.decisions.pop(0)


_made: list[_Governor] = []


@pytest.fixture
def pidfd() -> Iterator[int]:
    """Return a descriptor of this very process."""
    fd = os.pidfd_open(os.getpid())
    yield fd
    os.close(fd)


@pytest.fixture
def governed(monkeypatch: pytest.MonkeyPatch) -> Windows:
    """Return windows with a budget, and with governors of this module."""
    _made.clear()
    monkeypatch.setattr(windows_module, "Governor", _Governor)
    return Windows(WindowPlan(_COSTS, Budget(0.02)), "transactions", Prices.full_ns)


def _begun(windows: Windows, pidfd: int, window: _Window, pid: int = 0) -> None:
    windows.begin(pid or os.getpid(), pidfd, "its file", cast("ProbeWindow", window))


def test_without_a_budget_all_is_seen(pidfd: int) -> None:
    """
    Open for good, at the prices of a process alone, which caches make 15 % higher.
    """
    windows, window = Windows(WindowPlan(_COSTS), "transactions", Prices.full_ns), _Window()
    _begun(windows, pidfd, window)
    windows.step()
    cost = windows.cost(os.getpid(), is_alive=True)

    assert [TrapPrices(1150, 23_000)] == window.told
    assert not windows.has_budget
    assert cost is not None
    assert (4000, 3, 3) == (cost.overhead_ns, cost.traps, windows.traps)


def test_with_a_budget_it_begins_on_credit(governed: Windows, pidfd: int) -> None:
    """
    Open from the start, until the governor's allowance is used up.
    """
    window = _Window()
    _begun(governed, pidfd, window)
    governed.step()

    assert [(TrapPrices(1150, 23_000), 20 * _MS)] == window.told
    assert [Budget(0.02)] == [governor.budget for governor in _made]
    assert _NEVER_NS == governed.due_ns


def test_window_that_has_used_up_its_allowance_is_ended_and_later_begun_again(
    governed: Windows, pidfd: int, caplog: pytest.LogCaptureFixture
) -> None:
    """
    Without waiting for its time; it is said once that not everything is seen.
    """
    window = _Window()
    _begun(governed, pidfd, window)
    (governor,) = _made
    governor.decisions = [None, Grant(5 * _MS, 7), Grant(3 * _MS, 7), None]
    window.told.clear()
    with caplog.at_level(logging.INFO):
        window.has_used_up = True
        governed.step()
        governor.due_ns = 0
        governed.step()
        due_ns = governed.due_ns
        governed.step()
        governed.step()

    opened = (TrapPrices(1150, 23_000), 5 * _MS)
    assert ["end", "end", opened, 3 * _MS, "end"] == window.told
    assert [False, False, True, True] == governor.asked
    assert 0 == due_ns
    assert 1 == caplog.text.count("they are seen in windows")


def test_no_window_opens_before_the_last_probes_are_out(governed: Windows, pidfd: int) -> None:
    """
    Nor is the old one's end forgotten: the governor is asked again.
    """
    window = _Window()
    _begun(governed, pidfd, window)
    (governor,) = _made
    governor.decisions = [None, Grant(5 * _MS, None)]
    governor.due_ns = 0
    governed.step()
    window.can_open = False
    window.told.clear()
    governed.step()

    assert [] == window.told


def test_nothing_is_put_into_a_process_that_has_ended(governed: Windows) -> None:
    """
    Its number may be another one's by now.
    """
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        fd = os.pidfd_open(process.pid)
        window = _Window()
        _begun(governed, fd, window, process.pid)
    (governor,) = _made
    governor.due_ns = 0
    governed.step()
    os.close(fd)

    assert [] == governor.asked
    assert 1 == len(window.told)


def test_what_came_last_is_counted_of_a_process_that_has_ended() -> None:
    """
    Its traps and what they have cost; what it has used itself is what was read before.
    """
    windows, window = Windows(WindowPlan(_COSTS), "transactions", Prices.full_ns), _Window()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        fd = os.pidfd_open(process.pid)
        _begun(windows, fd, window, process.pid)
    window.cost_so_far_ns = 6000
    windows.end(process.pid)
    cost = windows.cost(process.pid, is_alive=False)
    os.close(fd)

    assert cost is not None
    assert (6000, 3) == (cost.overhead_ns, cost.traps)


def test_costs_are_read_in_turns(pidfd: int) -> None:
    """
    That which was read longest ago is next; what is not observed any more has no turn.
    """
    windows = Windows(WindowPlan(_COSTS), "transactions", Prices.full_ns)
    kept = [_Window(), _Window(), _Window()]
    for pid, window in enumerate(kept, 1):
        _begun(windows, pidfd, window, pid)
    windows.end(1)
    for window in kept:
        window.cost_so_far_ns = 5000
    read = []
    for _ in range(3):
        windows.note_cost()
        costs = [windows.cost(pid, is_alive=False) for pid in (1, 2, 3)]
        read.append([cost.overhead_ns for cost in costs if cost is not None])

    assert [[4000, 5000, 4000], [4000, 5000, 5000], [4000, 5000, 5000]] == read


def test_who_shares_a_place_pays_for_it(governed: Windows, pidfd: int) -> None:
    """
    100 ns a trap for each other process with a window at the same places; none when it has ended.
    """
    first, second, third = _Window(), _Window(), _Window()
    _begun(governed, pidfd, first, 1)
    _begun(governed, pidfd, second, 2)
    governed.end(1)
    governed.end(2)
    governed.forget(1)
    _begun(governed, pidfd, third, 3)

    assert [(TrapPrices(1265, 23_115), 20 * _MS), "end"] == second.told
    assert [(TrapPrices(1150, 23_000), 20 * _MS)] == third.told
    assert 9 == governed.traps


def test_governors_know_how_many_there_are(governed: Windows, pidfd: int) -> None:
    """
    All whose windows are opened and ended: no other that has ended, or is open all the time.
    """
    for pid in range(1, 5):
        _begun(governed, pidfd, _Window(), pid)
    governed.end(1)
    _made[1].is_endless = True
    governed.step()

    assert [2] * 4 == [governor.pace.processes for governor in _made]


def test_traps_that_nobody_sees_are_charged_at_the_rate_of_windows(pidfd: int) -> None:
    """
    4 us in 2 us of windows, so 2 us for each in which perf events were on their way out.
    """
    windows, window = Windows(WindowPlan(_COSTS), "transactions", Prices.full_ns), _Window()
    _begun(windows, pidfd, window)
    window.unseen_ns = 500
    windows.cost(os.getpid(), is_alive=True)
    cost = windows.cost(os.getpid(), is_alive=True)

    assert cost is not None
    assert 4000 + 2 * 1000 == cost.overhead_ns
