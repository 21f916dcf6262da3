"""Measures what a trap costs here with the real probes, on the dummy lock."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.budget.trap_costs import TrapCosts
from gilscope.gil.calibration.calibrate import Counted, DummyHook, calibrate
from gilscope.gil.calibration.dummy_lock import DummyLock
from gilscope.gil.probes.plan import Plan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window import Window
from gilscope.gil.probes.window_probes import WindowSites

__all__ = ["measure_trap_costs"]

# The first process: it is always there, and never maps the dummy lock.
_UNTRACED_PID = 1

_OF_WINDOWS = ("on_acquire", "on_release")


def measure_trap_costs(probe: GilProbe) -> TrapCosts:
    """Return the costs of a trap; to be called before *probe* is attached to anything else."""
    try:
        return calibrate(partial(_attached, probe), partial(_joined, probe))
    finally:
        # Waits for the dummy lock would take the room of the first second's.
        probe.forget_spans()


@contextmanager
def _attached(
    probe: GilProbe, lock: DummyLock, hooks: Sequence[DummyHook]
) -> Iterator[Callable[[], Counted]]:
    pid = os.getpid()
    acquires, releases = (
        [Hook(*hook) for hook in hooks if hook.program == program] for program in _OF_WINDOWS
    )
    others = tuple(Hook(*hook) for hook in hooks if hook.program not in _OF_WINDOWS)
    plan = Plan(others, lock.load_bias, lock.build_id, lock.callers, conds=(lock.cond,))
    probe.attach(pid, plan)
    window = probe.window(pid, WindowSites(acquires, releases, 0), _Nobody())
    try:
        window.open()
        yield lambda: _counted(probe, window, lock)
    finally:
        probe.await_closing(pid, window.close())
        probe.detach(pid)
        probe.forget(pid)


@contextmanager
def _joined(probe: GilProbe, hooks: Sequence[DummyHook], count: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(count):
            stack.callback(
                probe.release, probe.hold(_UNTRACED_PID, [Hook(*hook) for hook in hooks])
            )
        yield


class _Nobody:
    """Has never held the dummy lock."""

    def is_locked(self, cond: int) -> bool | None:  # noqa: ARG002 - as a window asks it
        """Return that it is free."""
        return False

    def holder_tid(self, cond: int) -> int | None:  # noqa: ARG002 - as a window asks it
        """Return that nobody is known."""
        return None


def _counted(probe: GilProbe, window: Window, lock: DummyLock) -> Counted:
    holds = window.read(time.monotonic_ns())[lock.cond].record
    waiter = probe.tables["threads"].get({"value": threading.get_native_id()}) or {"waits": ()}
    return Counted(holds["hold_sum_ns"], sum(holds["hold_slots"]), sum(waiter["waits"]))
