"""Processes that share their probes on waits get their own, unless they are too many."""

from collections.abc import Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import cast

import pytest

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.hold_windows import HoldWindows, ObservationPlan
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.model.kinds import Mode
from gilscope.process import procfs
from support.gil.hold_windows_setting import target

_PLAN = ObservationPlan(Mode.CONTENTION, shares_probes=True)


class _Shared:
    """A probe that processes share, and what becomes of it."""

    def __init__(self, number: int) -> None:
        self.sharing = set(range(1, number + 1))
        self.own: list[int] = []
        self.gone: set[int] = set()
        self.split_by: list[int] = []
        self.bears_two: list[int] = []
        self.awaited: dict[int, Sequence[Future[None]]] = {}
        self.closing: list[Future[None]] = [Future()]
        self.windows: dict[int, list[Future[None]]] = {}
        self.hold_windows = HoldWindows(cast("GilProbe", self), _PLAN)
        self.traced = {pid: self._begun(pid) for pid in self.sharing}

    def _begun(self, pid: int) -> AttachedProcess:
        self.windows[pid] = []
        traced = SimpleNamespace(
            pid=pid,
            target=SimpleNamespace(**vars(target()), hookpoints=()),
            hooks=tuple,
            gils={},
            shares_probes=True,
            wait_window=SimpleNamespace(
                closing=self.windows[pid], bear_two=lambda: self.bears_two.append(pid)
            ),
            window=None,
            blame=None,
        )
        self.hold_windows.begin(cast("AttachedProcess", traced))
        return cast("AttachedProcess", traced)

    def shares_with(self, pid: int) -> set[int]:
        return self.sharing if pid in self.sharing else set()

    def put_own(self, pid: int, _hooks: Sequence[Hook]) -> None:
        if pid in self.gone:
            raise ProcessLookupError
        self.own.append(pid)

    def drop_own(self, pids: Sequence[int]) -> None:
        for pid in {*pids} & {*self.own}:
            self.own.remove(pid)

    def split(self, pid: int) -> list[Future[None]]:
        self.split_by.append(pid)
        return self.closing

    def await_closing(self, pid: int, closing: Sequence[Future[None]]) -> None:
        self.awaited[pid] = closing

    def needs_windows(self, pid: int) -> bool:
        return self.hold_windows.split(self.traced[pid])


def test_each_has_its_own_before_the_shared_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One that has just ended keeps nobody else from that; and nobody is out before those are.
    """
    monkeypatch.setattr(procfs, "is_alive", lambda _: False)
    shared = _Shared(3)
    shared.gone = {2}

    assert shared.needs_windows(3)
    assert ([1, 3], [3]) == (shared.own, shared.split_by)
    assert [1, 2, 3] == shared.bears_two
    assert [False] * 3 == [each.shares_probes for each in shared.traced.values()]
    assert dict.fromkeys((1, 2, 3), shared.closing) == shared.awaited == shared.windows


def test_all_go_on_sharing_where_one_cannot_have_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    For it would have none, and it has not ended.
    """
    monkeypatch.setattr(procfs, "is_alive", lambda _: True)
    shared = _Shared(3)
    shared.gone = {2}

    assert not shared.needs_windows(3)
    assert ([], []) == (shared.own, shared.split_by)
    assert [True] * 3 == [each.shares_probes for each in shared.traced.values()]


def test_very_many_go_on_sharing(caplog: pytest.LogCaptureFixture) -> None:
    """
    Each with its own would make the traps of all others dearer.
    """
    caplog.set_level("INFO")
    assert _Shared(50).needs_windows(7)
    shared = _Shared(51)

    assert not shared.needs_windows(7)
    assert ([], []) == (shared.own, shared.split_by)
    assert [True] * 51 == [each.shares_probes for each in shared.traced.values()]
    assert "process 7: seeing its waits costs more than the overhead budget" in caplog.text
    assert "51 processes share" in caplog.text
