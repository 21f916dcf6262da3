"""Many processes that run the same file share what the kernel can bear."""

from random import Random
from types import SimpleNamespace
from typing import ClassVar, cast

import pytest

from gilscope.budget.governor import Budget, Grant, Usage
from gilscope.budget.pace import Pace
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window_probes import WindowSites
from gilscope.gil.tracing import overhead, process_windows
from gilscope.gil.tracing import windows as windows_module
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.gil.tracing.windows import Windows
from support.gil.windows_setting import AUTO, COLD, CONTENDED, COSTS, S, grant, target


class _StubWindow:
    """Opens and ends as it is told, and traps as often as it is told."""

    is_lingering = False
    has_used_up = False
    closes_unseen = False
    trapped = 0

    def __init__(self) -> None:
        self.is_open = False
        self.allowed: list[int | None] = []

    @property
    def can_open(self) -> bool:
        return not self.is_open

    def open(self, traps: int | None = None) -> None:
        self.is_open = True
        self.allowed.append(traps)

    def allow(self, traps: int) -> None:
        self.allowed.append(traps)

    def end(self) -> None:
        self.is_open = False

    def close(self) -> None:
        self.is_open = False

    def settle(self) -> None:
        pass

    def give_up_lingering(self) -> None:
        pass

    def traps(self) -> int:
        return self.trapped


class _Willing:
    """A governor that grants whatever it is asked for."""

    due_ns = 0
    is_over_budget = False
    processes_per_window = 0.0
    is_endless = False

    def __init__(self, _budget: Budget, _random: Random, pace: Pace) -> None:
        self.pace = pace
        _Crowd.governors.append(self)

    def step(self, _usage: Usage, *, is_open: bool) -> Grant | None:
        del is_open
        return grant(1000)

    def postpone(self, _usage: Usage) -> None:
        pass


class _Crowd:
    """Processes in auto mode, whose windows are opened whenever there is room."""

    governors: ClassVar[list[_Willing]] = []
    """Of the last sharing."""

    lapses = 0

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *inodes: int, build_id: str = "") -> None:
        self.now_ns = S
        self.governors.clear()
        self.windows = [_StubWindow() for _ in inodes]
        self._left = iter(self.windows)
        for module in (windows_module, overhead):
            monkeypatch.setattr(module, "time", self)
            monkeypatch.setattr(module, "process_cpu_ns", lambda _: 0)
        monkeypatch.setattr(process_windows, "time", self)
        monkeypatch.setattr(windows_module, "Governor", _Willing)
        self.observed = Windows(cast("GilProbe", self), AUTO)
        self.traced = [
            cast(
                "AttachedProcess",
                SimpleNamespace(
                    pid=pid,
                    target=target(inode, build_id),
                    hooks=tuple,
                    runtime=SimpleNamespace(locks=None),
                    gils={},
                    ended=False,
                    wait_window=None,
                    window=None,
                    blame=None,
                ),
            )
            for pid, inode in enumerate(inodes)
        ]
        for each in self.traced:
            self.observed.begin(each)

    def monotonic_ns(self) -> int:
        return self.now_ns

    def beat(self) -> None:
        """Nobody closes windows here."""

    def window(self, _pid: int, _sites: WindowSites, _reader: object) -> _StubWindow:
        return next(self._left)

    def walking_ns(self, _pid: int) -> int:
        """Nobody reads stacks here."""
        return 0

    def await_closing(self, pid: int, closed: object) -> None:
        """Have nothing to wait for."""

    def traps(self, pid: int) -> int:
        return 10 * (pid + 1)

    def step(self, seconds: int = 0) -> list[bool]:
        """Let time pass and look after all; return which windows are open."""
        self.now_ns += seconds * S
        self.observed.step()
        return [window.is_open for window in self.windows]


def test_six_windows_are_open_at_a_time_in_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Others have to wait; processes that run another file do not.
    """
    sharing = _Crowd(monkeypatch, *[2] * 8, *[3] * 2)

    assert [*[True] * 6, False, False, True, True] == sharing.step()
    assert [*[True] * 6, False, False, True, True] == sharing.step(5)


def test_one_build_on_many_devices_is_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Containers see the layer that they share as a file of their own; the kernel does not.
    """
    sharing = _Crowd(monkeypatch, *range(2, 10), build_id="571d98e0")

    assert [*[True] * 6, False, False] == sharing.step()
    cost = sharing.observed.cost(sharing.traced[2])
    assert cost is not None
    # Seven others are probed on the contended path.
    assert cost.overhead_ns == pytest.approx(30 * CONTENDED * (2000 + 7 * 100), abs=3)


def test_who_waits_for_a_window_gets_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After ten seconds those that have had one make room, and nobody is left out for good.
    """
    sharing = _Crowd(monkeypatch, *[2] * 8)
    has_been_open = [False] * 8
    for _ in range(60):
        is_open = sharing.step(1)
        assert sum(is_open) <= 6
        has_been_open = [was or now for was, now in zip(has_been_open, is_open, strict=True)]

    assert [True] * 8 == has_been_open


def test_governors_know_how_many_share_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Eight processes of one file share six windows, two of another need not.
    """
    sharing = _Crowd(monkeypatch, *[2] * 8, *[3] * 2)
    sharing.step()

    assert [8 / 6] * 8 + [1.0] * 2 == [each.processes_per_window for each in sharing.governors]


def test_governors_know_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    All that take turns: neither one that has ended, nor one in which a window stays open.
    """
    sharing = _Crowd(monkeypatch, *[2] * 8, *[3] * 2)
    (pace,) = {each.pace for each in sharing.governors}
    sharing.step(1)
    before = pace.processes
    sharing.observed.end(sharing.traced[0])
    sharing.governors[1].is_endless = True
    sharing.step(1)

    assert (10, 8) == (before, pace.processes)


def test_nobody_makes_room_where_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Six windows stay open for as long as they are granted.
    """
    sharing = _Crowd(monkeypatch, *[2] * 6)
    for _ in range(30):
        sharing.step(1)

        # Opened once, allowed more ever since.
        assert [True] * 6 == [window.is_open for window in sharing.windows]
    assert {30} == {len(window.allowed) for window in sharing.windows}


def test_a_trap_costs_more_in_a_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The kernel asks every process that is probed at the place, at each trap of each.
    """
    sharing = _Crowd(monkeypatch, *[2] * 4)
    sharing.step()
    for window in sharing.windows:
        window.trapped = 50
    cost = sharing.observed.cost(sharing.traced[2])

    assert cost is not None
    # Three others have a window, and are probed on the contended path; 30 traps were there.
    expected_ns = 50 * COLD * (1000 + 3 * 100) + 30 * CONTENDED * (2000 + 3 * 100)
    assert cost.overhead_ns == pytest.approx(expected_ns, abs=3)
    assert 80 == cost.traps


def test_all_traps_are_told_of_those_that_are_forgotten_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    The sum never falls.
    """
    sharing = _Crowd(monkeypatch, 2, 2, 3)
    sharing.step()
    before = sharing.observed.traps
    sharing.observed.forget(1)

    assert 10 + 20 + 30 == before == sharing.observed.traps
    assert COSTS == sharing.observed.trap_costs
