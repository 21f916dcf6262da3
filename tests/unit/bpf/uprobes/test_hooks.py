"""Probes are put in all or none, and taken out without anybody waiting."""

import errno
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import cast

import pytest

from gilscope.bpf.uprobes import hooks as uprobes_module
from gilscope.bpf.uprobes.hooks import Hook, Uprobes
from gilscope.bpf.uprobes.keeper import Keeper, Place
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.process import procfs

_HOOKS = (
    Hook("on_acquire", "/python", 0x10),
    Hook("on_release", "/python", 0x20),
    Hook("on_acquire", "/python", 0x30),
    Hook("on_release", "/library", 0x40),
)
_PROGRAMS = {"on_acquire": 1001, "on_release": 1002}


class _Keeper:
    """Notes what is asked for, and takes probes out when the test says so."""

    pid = 4321

    def __init__(self) -> None:
        self.asked: list[Place] = []
        self.held: dict[int, Place] = {}
        self.closing: list[tuple[Future[None], list[int]]] = []
        self.refusal: OSError | None = None
        self.refuses_from = 0
        self.is_slow = False
        self.is_lost = False
        self.has_ended = False
        self.lapses = 0
        self.beats = 0

    def open(self, place: Place) -> int:
        if self.refusal is not None and len(self.asked) >= self.refuses_from:
            raise self.refusal
        self.asked.append(place)
        self.held[len(self.asked)] = place
        return len(self.asked)

    def close(self, numbers: Sequence[int]) -> Future[None]:
        self.closing.append((Future(), list(numbers)))
        if not self.is_slow:
            self.finish_closing()
        return self.closing[-1][0] if self.is_slow else _done()

    def finish_closing(self) -> None:
        for future, numbers in self.closing:
            for number in numbers:
                del self.held[number]
            future.set_result(None)
        self.closing.clear()

    def beat(self) -> None:
        self.beats += 1

    def end(self) -> None:
        self.has_ended = True

    def await_end(self) -> None:
        assert self.is_lost


def _done() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future


def _uprobes(keeper: _Keeper, *, has_links: bool) -> Uprobes:
    return Uprobes(_PROGRAMS, has_links=has_links, start_keeper=lambda: cast("Keeper", keeper))


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Keeper]:
    """Nothing real is probed, and in the end nothing may be held."""
    made = _Keeper()
    monkeypatch.setattr(procfs, "is_alive", lambda _: True)
    yield made
    assert {} == made.held


@pytest.fixture
def linked(keeper: _Keeper) -> Iterator[Uprobes]:
    """Where the kernel has links."""
    uprobes = _uprobes(keeper, has_links=True)
    yield uprobes
    uprobes.shut_down()


def test_one_group_for_each_program_and_file(keeper: _Keeper, linked: Uprobes) -> None:
    """
    All of its places at once, and the number that the program is to know.
    """
    opened = linked.open(4711, _HOOKS, 7)

    assert [
        Place(1001, "/python", [0x10, 0x30], 4711, 7),
        Place(1002, "/python", [0x20], 4711, 7),
        Place(1002, "/library", [0x40], 4711, 7),
    ] == keeper.asked
    assert list(keeper.held) == opened
    linked.close(opened)


def test_perf_events_where_there_are_no_links(
    keeper: _Keeper, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """
    The keeper makes one for each place, of the type that the kernel has given to uprobes.
    """
    kind = tmp_path / "type"
    kind.write_text("9\n")
    monkeypatch.setattr(uprobes_module, "_UPROBE_TYPE", kind)
    unlinked = _uprobes(keeper, has_links=False)
    opened = unlinked.open(4711, _HOOKS, 7)

    assert [9, 9, 9] == [place.perf_type for place in keeper.asked]
    unlinked.close(opened)
    unlinked.shut_down()


def test_nothing_to_probe_starts_no_keeper() -> None:
    """
    No hooks are no error, and need nobody who holds them.
    """
    uprobes = Uprobes(_PROGRAMS, has_links=True, start_keeper=pytest.fail)

    assert [] == uprobes.open(4711, (), 7)
    assert [] == uprobes.close([])
    uprobes.shut_down()


@pytest.mark.parametrize("refuses_from", range(3))
def test_when_one_place_is_refused_none_is_probed(
    keeper: _Keeper, linked: Uprobes, refuses_from: int
) -> None:
    """
    What was open already is closed, before anybody counts on it.
    """
    keeper.refuses_from = refuses_from
    keeper.refusal = OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    with pytest.raises(KernelOrBccMissing):
        linked.open(4711, _HOOKS, 7)
    assert (refuses_from, {}) == (len(keeper.asked), keeper.held)


@pytest.mark.parametrize(
    ("number", "expected", "message"),
    [
        (errno.EPERM, NotPermitted, "refused uprobes in process 4711 (Operation not permitted)"),
        (errno.EACCES, NotPermitted, "refused uprobes in process 4711 (Permission denied)"),
        (errno.ESRCH, ProcessLookupError, "No such process"),
        (errno.EMFILE, KernelOrBccMissing, "no room for the probes of process 4711: gilscope may"),
        (errno.EINVAL, KernelOrBccMissing, "cannot put uprobes at 0x10, 0x30 of /python: Invalid"),
        (errno.ENOENT, KernelOrBccMissing, "cannot put uprobes at 0x10, 0x30 of /python: No such"),
    ],
)
def test_a_refusal_is_named(
    keeper: _Keeper, linked: Uprobes, number: int, expected: type[Exception], message: str
) -> None:
    """
    By what the kernel said: not permitted, gone, or the places that it would not have.
    """
    keeper.refusal = OSError(number, os.strerror(number))

    with pytest.raises(expected) as refused:
        linked.open(4711, _HOOKS, 7)
    assert message in str(refused.value)


def test_files_of_a_process_that_has_ended(
    keeper: _Keeper, linked: Uprobes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Its folder below /proc goes with it: a file that is not found there is no fault of the probes.
    """
    keeper.refusal = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    monkeypatch.setattr(procfs, "is_alive", lambda _: False)

    with pytest.raises(ProcessLookupError):
        linked.open(4711, _HOOKS, 7)


def test_closing_is_not_waited_for(keeper: _Keeper, linked: Uprobes) -> None:
    """
    However long the kernel takes, and it is said when all are out.
    """
    opened = linked.open(4711, _HOOKS, 7)
    keeper.is_slow = True
    closing = linked.close(opened)

    assert [False] == [each.done() for each in closing]
    keeper.finish_closing()
    assert [True] == [each.done() for each in closing]


def test_a_beat_is_sent_while_there_is_a_window(keeper: _Keeper, linked: Uprobes) -> None:
    """
    Only then, and not again at once however often somebody wants it.
    """
    probes = linked.open(4711, _HOOKS, 7)
    linked.beat()
    assert 0 == keeper.beats
    window = linked.open(4711, _HOOKS, 7, is_window=True)
    linked.beat()
    linked.beat()
    assert 1 == keeper.beats
    assert [True] * 3 == [place.is_window for place in keeper.asked[3:]]
    linked.close([*probes, *window])


def test_what_nobody_asked_for_goes(keeper: _Keeper, linked: Uprobes) -> None:
    """
    A probe is put into the keeper itself and taken out again, at all of the places.
    """
    linked.leave_to_the_attached(_HOOKS)

    assert [_Keeper.pid] * 3 == [place.pid for place in keeper.asked]


def test_after_the_loss_of_a_keeper_there_is_another() -> None:
    """
    The loss is counted; windows that it closed before stay counted too.
    """
    first, second = _Keeper(), _Keeper()
    keepers = iter([first, second])
    uprobes = Uprobes(_PROGRAMS, has_links=True, start_keeper=lambda: cast("Keeper", next(keepers)))
    uprobes.open(4711, _HOOKS, 7)
    first.lapses, first.is_lost = 2, True
    assert (1, 2, None) == (uprobes.losses, uprobes.lapses, uprobes.keeper_pid)
    opened = uprobes.open(4711, _HOOKS, 7)

    assert (1, 2, _Keeper.pid) == (uprobes.losses, uprobes.lapses, uprobes.keeper_pid)
    assert list(second.held) == opened
    uprobes.close(opened)
    uprobes.shut_down()
    assert (False, True) == (first.has_ended, second.has_ended)
