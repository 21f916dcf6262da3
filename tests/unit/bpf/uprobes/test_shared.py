"""Probes that all processes share: placed for the first who needs them, out after the last."""

import errno
from collections.abc import Iterable
from concurrent.futures import Future
from typing import cast

import pytest

from gilscope.bpf.uprobes.hooks import Hook, Uprobes
from gilscope.bpf.uprobes.shared import SharedProbes

_HOOKS = (Hook("on_wait", "/proc/self/fd/7", 0x10), Hook("on_yield", "/proc/self/fd/7", 0x20))
_ELSEWHERE = tuple(Hook(hook.program, "/proc/self/fd/9", hook.offset) for hook in _HOOKS)
_FILE, _OTHER = (1, 11), (1, 12)


class _Uprobes:
    """Notes which groups are in place."""

    def __init__(self) -> None:
        self.held: dict[int, tuple[Hook, ...]] = {}
        self.opened = 0
        self.losses = 0
        self.refusal: OSError | None = None

    def open(self, _pid: int, hooks: Iterable[Hook], cookie: int, *, is_for_all: bool) -> list[int]:
        assert (0, True) == (cookie, is_for_all)
        if self.refusal is not None:
            raise self.refusal
        self.opened += 1
        self.held[self.opened] = tuple(hooks)
        return [self.opened]

    def close(self, groups: Iterable[int]) -> list[Future[None]]:
        for group in groups:
            self.held.pop(group, None)
        return [Future()]

    def lose(self) -> None:
        """End the keeper, and all probes with it."""
        self.held.clear()
        self.losses += 1


@pytest.fixture
def uprobes() -> _Uprobes:
    """Return some that place anything."""
    return _Uprobes()


@pytest.fixture
def shared(uprobes: _Uprobes) -> SharedProbes:
    """Return probes that nobody needs yet."""
    return SharedProbes(cast("Uprobes", uprobes))


def test_they_are_placed_once_for_all_who_run_a_file(
    uprobes: _Uprobes, shared: SharedProbes
) -> None:
    """
    By whatever descriptor each of them has the file open.
    """
    shared.join(100, _FILE, _HOOKS)
    shared.join(200, _FILE, _ELSEWHERE)
    shared.join(300, _OTHER, _HOOKS)

    assert {1: _HOOKS, 2: _HOOKS} == uprobes.held
    assert [100, 200, 300] == shared.pids


def test_they_stay_until_nobody_needs_them(uprobes: _Uprobes, shared: SharedProbes) -> None:
    """
    Who leaves while others stay has nothing to wait for.
    """
    shared.join(100, _FILE, _HOOKS)
    shared.join(200, _FILE, _HOOKS)

    assert [] == shared.leave(100)
    assert {1: _HOOKS} == uprobes.held
    assert 1 == len(shared.leave(200))
    assert not uprobes.held
    assert [] == shared.leave(200)
    assert [] == shared.pids


def test_other_places_of_the_same_file_are_others(uprobes: _Uprobes, shared: SharedProbes) -> None:
    """
    A file may have been examined anew, and found to be another since.
    """
    shared.join(100, _FILE, _HOOKS)
    shared.join(200, _FILE, _HOOKS[:1])

    assert {1: _HOOKS, 2: _HOOKS[:1]} == uprobes.held


def test_with_a_new_keeper_they_are_placed_once_more(
    uprobes: _Uprobes, shared: SharedProbes
) -> None:
    """
    For the first who comes again; those who have not yet are none the less still counted on.
    """
    for pid in (100, 200):
        shared.join(pid, _FILE, _HOOKS)
    uprobes.lose()
    shared.leave(100)
    shared.join(100, _FILE, _HOOKS)
    shared.leave(200)

    assert {2: _HOOKS} == uprobes.held
    shared.join(200, _FILE, _HOOKS)
    shared.leave(100)
    assert {2: _HOOKS} == uprobes.held
    shared.leave(200)
    assert not uprobes.held


def test_whoever_they_are_refused_to_needs_nothing(uprobes: _Uprobes, shared: SharedProbes) -> None:
    """
    The next one tries again.
    """
    uprobes.refusal = PermissionError(errno.EPERM, "no")
    with pytest.raises(PermissionError):
        shared.join(100, _FILE, _HOOKS)
    uprobes.refusal = None

    assert [] == shared.leave(100)
    shared.join(200, _FILE, _HOOKS)
    assert {1: _HOOKS} == uprobes.held


def test_who_is_to_have_its_own_takes_them_out_for_all_who_share(
    uprobes: _Uprobes, shared: SharedProbes
) -> None:
    """
    From then on nobody shares them, and who leaves has nothing to leave.
    """
    shared.join(100, _FILE, _HOOKS)
    shared.join(200, _FILE, _ELSEWHERE)
    shared.join(300, _OTHER, _HOOKS)
    assert {100, 200} == shared.sharing(200)
    assert not shared.has_own(100, _FILE, _HOOKS)

    assert 1 == len(shared.split(200))

    assert {2: _HOOKS} == uprobes.held
    assert [300] == shared.pids
    assert shared.has_own(400, _FILE, _ELSEWHERE)
    assert not shared.has_own(400, _OTHER, _HOOKS)
    assert set() == shared.sharing(100)
    assert [] == shared.leave(100)
    for pid in (200, 400):
        assert [] == shared.leave(pid)
    assert not shared.has_own(500, _FILE, _HOOKS)
