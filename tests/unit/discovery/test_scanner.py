"""What the scanner concludes from a process that cannot be traced."""

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gilscope.discovery import scanner
from gilscope.discovery.scanner import Scanner
from gilscope.discovery.selection import Kinship
from gilscope.errors import NoGil, NothingMapped, NotPython
from gilscope.tracing.tracer import Tracer


class _Refusing:
    """A tracer to which no process is one that it can trace."""

    pids = ()
    gils = SimpleNamespace(untrusted_pids=())

    def __init__(self, error: NotPython | NoGil) -> None:
        self.asked = 0
        self._error = error

    def attach(self, *_: Any) -> None:
        """Refuse it."""
        self.asked += 1
        raise self._error

    def traces(self, _pid: int) -> bool:
        """Trace none."""
        return False

    def drop_ended(self, *_: Any) -> None:
        """Forget nothing."""


@pytest.mark.parametrize(("error", "asked"), [(NothingMapped("x"), 2), (NotPython("x"), 1)])
def test_a_program_is_foreign_once_it_maps_something(
    monkeypatch: pytest.MonkeyPatch, error: NotPython, asked: int
) -> None:
    """
    One that has just been executed maps nothing: its file is not judged by that.
    """
    monkeypatch.setattr("gilscope.discovery.scanner.procfs.list_pids", lambda: [os.getppid()])
    monkeypatch.setattr("gilscope.discovery.programs.procfs.maps_mention", lambda *_: False)
    monkeypatch.setattr(scanner, "_RETRIES_S", (0.0, 0.0))
    tracer = _Refusing(error)
    scan = Scanner(cast("Tracer", tracer), lambda *_: True, ())
    scan.scan()
    scan.scan()

    assert asked == tracer.asked


@pytest.mark.parametrize(("again_s", "asked"), [(0.0, 3), (3600.0, 1)])
def test_what_has_no_gil_may_switch_it_on_later(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    again_s: float,
    asked: int,
) -> None:
    """
    It is refused, which is logged once, and asked again when it is time.
    """
    caplog.set_level("INFO")
    monkeypatch.setattr("gilscope.discovery.scanner.procfs.list_pids", lambda: [os.getppid()])
    monkeypatch.setattr(scanner, "_SWITCHED_S", again_s)
    tracer = _Refusing(NoGil("has none"))
    scan = Scanner(cast("Tracer", tracer), lambda *_: True, ())
    for _ in range(3):
        scan.scan()

    assert asked == tracer.asked
    assert [(os.getppid(), "has none")] == [(each.pid, each.reason) for each in scan.refusals()]
    assert 1 == caplog.text.count("has none")


class _Held:
    """A tracer of the only process, which somebody else attaches to while it is being judged."""

    gils = SimpleNamespace(untrusted_pids=())

    def __init__(self) -> None:
        self.pids: tuple[int, ...] = ()
        self.asked = 0

    def is_let_go(self, pid: int, _: Kinship) -> bool:
        """Have it traced before it is let go, as `record` does with its command."""
        self.pids = (pid,)
        return True

    def attach(self, *_: Any) -> None:
        """Begin anew."""
        self.asked += 1
        raise NotPython("x")

    def traces(self, pid: int) -> bool:
        """Trace the one."""
        return pid in self.pids

    def drop_ended(self, *_: Any) -> None:
        """Forget nothing."""


def test_who_is_traced_meanwhile_is_not_attached_to_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    What was counted of a command since it was let go would be lost.
    """
    monkeypatch.setattr("gilscope.discovery.scanner.procfs.list_pids", lambda: [os.getppid()])
    monkeypatch.setattr("gilscope.discovery.programs.procfs.maps_mention", lambda *_: True)
    tracer = _Held()
    Scanner(cast("Tracer", tracer), tracer.is_let_go, ()).scan()

    assert ((os.getppid(),), 0) == (tracer.pids, tracer.asked)


class _Forking:
    """A tracer of the only process, which forks whenever a test says."""

    gils = SimpleNamespace(untrusted_pids=())

    def __init__(self) -> None:
        self.forks = 0
        self.pids: list[int] = [os.getppid()]

    def drop_ended(self, *_: Any) -> None:
        """Forget nothing."""


class _Clock(SimpleNamespace):
    """Time that passes when all processes are listed, and when a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.pids = [os.getppid()]
        self.listed_ms: list[int] = []
        self.judged_ms: dict[int, int] = {}

    def monotonic(self) -> float:
        """Tell it."""
        return self.now_s

    def list_pids(self) -> list[int]:
        """Take a hundredth of a second."""
        self.listed_ms.append(self.ms)
        self.now_s += 0.01
        return self.pids

    def is_wanted(self, pid: int, _: Kinship) -> bool:
        """Want nobody."""
        self.judged_ms.setdefault(pid, self.ms)
        return False

    @property
    def ms(self) -> int:
        """Since the beginning."""
        return round(1000 * (self.now_s - 1000))


def _begun(
    monkeypatch: pytest.MonkeyPatch, *, are_births_new: bool
) -> tuple[_Clock, _Forking, Scanner]:
    """Return a scanner that has listed all once, with its clock and its tracer."""
    clock, tracer = _Clock(), _Forking()
    monkeypatch.setattr(scanner, "time", clock)
    monkeypatch.setattr("gilscope.discovery.scanner.procfs.list_pids", clock.list_pids)
    births = "gilscope.discovery.fork_counter.Births.are_new"
    monkeypatch.setattr(births, lambda _: are_births_new)
    scan = Scanner(cast("Tracer", tracer), clock.is_wanted, ())
    scan.scan()
    return clock, tracer, scan


def test_children_of_what_is_traced_are_found_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They are listed at once, and judged when they have had time to execute something else.

    But they are not listed so often that nothing else is done.
    """
    clock, tracer, scan = _begun(monkeypatch, are_births_new=False)
    forks_ms = {500: 8000001, 540: 8000002, 570: 8000003}
    while clock.ms < 1500:
        if clock.ms in forks_ms:
            clock.pids.append(forks_ms[clock.ms])
            tracer.forks += 1
        scan.note_executed(())
        scan.scan()
        clock.now_s += 0.01

    assert [0, 500, 810] == clock.listed_ms
    assert {8000001: 520, 8000002: 830, 8000003: 830} == clock.judged_ms


def test_a_child_has_time_to_execute_something_whatever_else_has_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    A fork is a birth, too, for which there may be a search at that very moment.
    """
    clock, tracer, scan = _begun(monkeypatch, are_births_new=True)
    clock.now_s = 1000.5
    clock.pids.append(8000001)
    tracer.forks += 1
    for _ in range(4):
        scan.note_executed(())
        scan.scan()
        clock.now_s += 0.01

    assert [0, 500] == clock.listed_ms
    assert {8000001: 520} == clock.judged_ms
