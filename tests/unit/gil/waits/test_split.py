"""Processes that share their probes on waits get their own, unless they are too many."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import cast

import pytest

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.gil.waits.split import Sharer, SharingGoesOn, split
from gilscope.gil.waits.window import WaitWindow
from gilscope.process import procfs


class _Shared:
    """A probe that processes share, and what becomes of it."""

    def __init__(self, number: int) -> None:
        self.own: list[int] = []
        self.gone: set[int] = set()
        self.split_by: list[int] = []
        self.bears_two: list[int] = []
        self.awaited: dict[int, Sequence[Future[None]]] = {}
        self.closing: list[Future[None]] = [Future()]
        self.windows: dict[int, list[Future[None]]] = {pid: [] for pid in range(1, number + 1)}

    def put_own(self, pid: int, _hooks: Sequence[Hook]) -> None:
        if pid in self.gone:
            raise ProcessLookupError("it is not there")
        self.own.append(pid)

    def drop_own(self, pids: Iterable[int]) -> None:
        for pid in {*pids} & {*self.own}:
            self.own.remove(pid)

    def split(self, pid: int) -> list[Future[None]]:
        self.split_by.append(pid)
        return self.closing

    def await_closing(self, pid: int, closing: Sequence[Future[None]]) -> None:
        self.awaited[pid] = closing

    def split_for(self, pid: int) -> None:
        split(self, pid, [self._sharer(each) for each in self.windows])

    def _sharer(self, pid: int) -> Sharer:
        window = SimpleNamespace(
            closing=self.windows[pid], bear_two=lambda: self.bears_two.append(pid)
        )
        return Sharer(pid, (), cast("WaitWindow", window))


def test_each_has_its_own_before_the_shared_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One that has just ended keeps nobody else from that; and nobody is out before those are.
    """
    monkeypatch.setattr(procfs, "is_alive", lambda _: False)
    shared = _Shared(3)
    shared.gone = {2}

    shared.split_for(3)

    assert ([1, 3], [3]) == (shared.own, shared.split_by)
    assert [1, 2, 3] == shared.bears_two
    assert dict.fromkeys((1, 2, 3), shared.closing) == shared.awaited == shared.windows


def test_all_go_on_sharing_where_one_cannot_have_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    For it would have none, and it has not ended.
    """
    monkeypatch.setattr(procfs, "is_alive", lambda _: True)
    shared = _Shared(3)
    shared.gone = {2}

    with pytest.raises(SharingGoesOn, match=r"process 2, .*can have none of its own: it is not"):
        shared.split_for(3)

    assert ([], []) == (shared.own, shared.split_by)


def test_very_many_go_on_sharing() -> None:
    """
    Each with its own would make the traps of all others dearer.
    """
    fifty, more = _Shared(50), _Shared(51)
    fifty.split_for(7)

    with pytest.raises(SharingGoesOn, match="51 processes share"):
        more.split_for(7)

    assert (list(fifty.windows), []) == (fifty.own, more.own)
