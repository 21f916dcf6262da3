"""The cost of a trap, measured with the real probes on a lock of the agent's own."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.budget.trap_costs import ASSUMED
from gilscope.gil.calibration.calibrate import Counted, DummyHook, calibrate, dummy_hooks
from gilscope.gil.calibration.dummy_lock import DummyLock, Exercise
from gilscope.gil.probes.plan import Plan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window import Window
from gilscope.gil.probes.window_probes import WindowSites
from gilscope.values import Record

pytestmark = pytest.mark.live

_ROUNDS = 23
_NONE: Record = {"waits": (0, 0, 0, 0), "hold_slots": (0,), "hold_sum_ns": 0}


class _NobodyLooks:
    """In place of a reader of the locks themselves: what it says is not asked for here."""

    def is_locked(self, cond: int) -> bool | None:  # noqa: ARG002 - as a window asks it
        """Return that it cannot be read."""
        return None

    def holder_tid(self, cond: int) -> int | None:  # noqa: ARG002 - the same
        """Return that it cannot be told."""
        return None


class _Seen:
    """What the probes have seen of the dummy lock."""

    def __init__(self, probe: GilProbe, window: Window, cond: int) -> None:
        self._probe = probe
        self._window = window
        self._cond = cond

    def counted(self) -> Counted:
        """Return what calibration wants to know."""
        lock = self._window.read(time.monotonic_ns())[self._cond].record
        return Counted(lock["hold_sum_ns"], sum(lock["hold_slots"]), sum(self.waits()))

    def waits(self) -> tuple[int, ...]:
        """Return how often this thread has waited, by kind."""
        record = self._probe.tables["threads"].get({"value": threading.get_native_id()})
        return tuple((record or _NONE)["waits"])

    def interval_ns(self) -> int | None:
        """Return the switch interval that was found in the lock; None: nobody has waited for it."""
        record = self._probe.tables["gils"].get({"cond": self._cond, "tgid": os.getpid()})
        return None if record is None else record["interval_ns"]

    def traps(self) -> tuple[int, int]:
        """Return how often the sites of full mode, and those of the contended path, were met."""
        return self._window.traps(), self._probe.traps(os.getpid())

    def lost(self) -> list[int]:
        """Return the reasons for which anything was lost or was not as it has to be."""
        lost = self._probe.tables["lost_events"].items()
        return [key["reason"] for key, _ in lost if key["tgid"] == os.getpid()]


@contextmanager
def _attached(probe: GilProbe, lock: DummyLock, hooks: Sequence[DummyHook]) -> Iterator[_Seen]:
    """Put *hooks* into this process, those of holds in a window that is open all the time."""
    pid = os.getpid()
    acquires = [Hook(*hook) for hook in hooks if hook.program == "on_acquire"]
    releases = [Hook(*hook) for hook in hooks if hook.program == "on_release"]
    others = [Hook(*hook) for hook in hooks if hook.program not in ("on_acquire", "on_release")]
    plan = Plan(tuple(others), lock.load_bias, lock.build_id, lock.callers, conds=(lock.cond,))
    probe.attach(pid, plan)
    window = probe.window(pid, WindowSites(acquires, releases, 0), _NobodyLooks())
    try:
        window.open()
        yield _Seen(probe, window, lock.cond)
    finally:
        probe.await_closing(pid, window.close())
        probe.detach(pid)
        probe.forget(pid)


@contextmanager
def _counting(
    probe: GilProbe, lock: DummyLock, hooks: Sequence[DummyHook]
) -> Iterator[Callable[[], Counted]]:
    with _attached(probe, lock, hooks) as seen:
        yield seen.counted
        assert [] == seen.lost()


@contextmanager
def _joined(probe: GilProbe, hooks: Sequence[DummyHook], count: int) -> Iterator[None]:
    """Put *hooks* that many times into the parent, which never gets there."""
    held = [probe.hold(os.getppid(), [Hook(*hook) for hook in hooks]) for _ in range(count)]
    yield
    for descriptors in held:
        wait(probe.release(descriptors))


@pytest.fixture
def lock() -> Iterator[DummyLock]:
    """One that is closed in the end."""
    with DummyLock() as made:
        yield made


def _descriptors(probe: GilProbe) -> list[str]:
    """Return what this process has open once all probes are out that are to be."""
    # Attaching waits for what the last attachment has left.
    probe.attach(os.getpid(), Plan((), 0, DummyLock.build_id, ()))
    probe.detach(os.getpid())
    probe.forget(os.getpid())
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing's own
            found.append(str(link.readlink()))
    return sorted(found)


@pytest.mark.parametrize("exercise", [Exercise.HOLDS, Exercise.STEPPED_HOLDS])
def test_every_hold_is_seen(probe: GilProbe, lock: DummyLock, exercise: Exercise) -> None:
    """
    Twenty-three holds are twenty-three holds, two traps each, of nothing that is no GIL.
    """
    with _attached(probe, lock, dummy_hooks(lock)) as seen:
        lock.run(exercise, _ROUNDS, is_probed=True)
        counted, traps, lost = seen.counted(), seen.traps(), seen.lost()

    assert (_ROUNDS, 0) == (counted.holds, counted.waits)
    assert counted.hold_ns > 0
    assert (2 * _ROUNDS, 0) == traps
    assert [] == lost


def test_every_wait_is_seen(probe: GilProbe, lock: DummyLock) -> None:
    """
    Twenty-three waits are as many, all after a blocking call, for a lock that passes for a GIL.
    """
    with _attached(probe, lock, dummy_hooks(lock)) as seen:
        lock.run(Exercise.WAITS, _ROUNDS, is_probed=True)
        counted, waits, traps, lost = seen.counted(), seen.waits(), seen.traps(), seen.lost()
        interval_ns = seen.interval_ns()

    assert Counted(hold_ns=0, holds=0, waits=_ROUNDS) == counted
    # The cause is found by stepping up to the caller, as in a real take.
    assert (_ROUNDS, 0, 0, 0) == waits
    assert 5_000_000 == interval_ns
    assert (0, 2 * _ROUNDS) == traps
    assert [] == lost


def test_the_plain_copy_is_not_probed(probe: GilProbe, lock: DummyLock) -> None:
    """
    What runs for comparison meets no probe.
    """
    with _attached(probe, lock, dummy_hooks(lock)) as seen:
        for exercise in Exercise:
            lock.run(exercise, 1000, is_probed=False)
        counted, traps, lost = seen.counted(), seen.traps(), seen.lost()

    assert Counted(0, 0, 0) == counted
    assert (0, 0) == traps
    assert [] == lost


def test_costs_are_measured(probe: GilProbe, caplog: pytest.LogCaptureFixture) -> None:
    """
    Every cost is measured and above zero; an empty hold lasts no longer than its two traps.
    """
    costs = calibrate(
        lambda lock, hooks: _counting(probe, lock, hooks),
        lambda hooks, count: _joined(probe, hooks, count),
    )

    assert costs.is_measured
    assert [] == caplog.records
    assert 0 < costs.contention_ns
    assert 0 < costs.inside_hold_ns <= round(2 * costs.full_ns)
    assert 0 < costs.inside_stepped_hold_ns <= round(2 * costs.stepped_ns)


def test_nothing_is_left(probe: GilProbe) -> None:
    """
    Afterwards no code is mapped, no descriptor open and nothing counted that was not before.
    """
    before = _descriptors(probe)

    calibrate(
        lambda lock, hooks: _counting(probe, lock, hooks),
        lambda hooks, count: _joined(probe, hooks, count),
    )

    assert "gilscope-dummy" not in Path("/proc/self/maps").read_text()
    for name in ("targets", "threads"):
        assert probe.tables[name].get({"value": os.getpid()}) is None
    assert before == _descriptors(probe)


def test_uprobes_are_refused(probe: GilProbe, caplog: pytest.LogCaptureFixture) -> None:
    """
    Where the kernel takes no uprobe the costs are assumed, one warning says so, nothing is left.
    """
    before = _descriptors(probe)

    costs = calibrate(
        lambda lock, hooks: _counting(
            # There is no code in a directory.
            probe,
            lock,
            [hook._replace(path="/") for hook in hooks],
        ),
        lambda hooks, count: _joined(probe, hooks, count),
    )

    assert costs == ASSUMED
    (warning,) = caplog.records
    assert logging.WARNING == warning.levelno
    assert "cannot put uprobes at" in warning.message
    assert before == _descriptors(probe)
    assert "gilscope-dummy" not in Path("/proc/self/maps").read_text()


def test_probes_of_another_process(probe: GilProbe, caplog: pytest.LogCaptureFixture) -> None:
    """
    Probes that are in place and never met cost nothing, so they say nothing of the cost.
    """

    @contextmanager
    def elsewhere(lock: DummyLock, hooks: Sequence[DummyHook]) -> Iterator[Callable[[], Counted]]:
        with DummyLock() as other:
            moved = [hook._replace(path=other.path) for hook in hooks]
            with _counting(probe, lock, moved) as counted:
                yield counted

    assert calibrate(elsewhere, lambda hooks, count: _joined(probe, hooks, count)) == ASSUMED
    (warning,) = caplog.records
    assert "the probes have seen 0 of" in warning.message
