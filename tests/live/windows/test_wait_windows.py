"""Windows of waits in a real process: what counts in them, and what does not."""

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accuracy.truth import Workload, started
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.gil.waits.window import Parts, WaitWindow
from gilscope.process.procfs import list_tids
from support.commands.gilscope import eventually
from support.interpreters.known import ONE_PER_MINOR, Interpreter
from support.tracing.observations import thread_of
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_S = 1_000_000_000
_HOLD_S = 0.3
_WARM_UP_NS = 15_000_000
_LONG_NS = 60 * _S
_FUTEX = {"x86_64": "202", "aarch64": "98"}[platform.machine()]
"""The number of the system call that waits for a condition variable."""


@contextmanager
def _holding(interpreter: Interpreter) -> Iterator[Workload]:
    """Run a process in which one thread waits for as long as another one holds the GIL."""
    arguments = ("hold_in_c.py", "--threads", "1", "--seconds", str(_HOLD_S))
    with started(command_of(interpreter), *arguments) as workload:
        yield workload


def _window_of(tracer: GilAccount, probe: GilProbe, pid: int) -> WaitWindow:
    traced = tracer.attached(pid)
    assert traced is not None
    hooks = traced.hooks(traced.target.hookpoints)
    traced.wait_window = probe.wait_window(
        pid, hooks, Parts(lambda: tuple(traced.gils), lambda: list_tids(pid))
    )
    return traced.wait_window


def _take_out(window: WaitWindow) -> None:
    window.end()
    eventually(lambda: window.in_flight().counted_ns > time.monotonic_ns())
    window.take_out()
    eventually(lambda: window.is_out)


def _waiter(workload: Workload) -> int:
    tids = {int(task.name) for task in Path(f"/proc/{workload.pid}/task").iterdir()}
    (tid,) = tids - {workload.pid}
    return tid


def _begin_hold(workload: Workload) -> None:
    """Have the GIL held, and return when the other thread waits for it."""
    call = Path(f"/proc/{workload.pid}/task/{_waiter(workload)}/syscall")
    workload.command()
    in_a_row = 0

    def waits() -> bool:
        nonlocal in_a_row
        for _ in range(20):
            in_a_row = in_a_row + 1 if call.read_text().split(" ", 1)[0] == _FUTEX else 0
        return in_a_row >= 20

    eventually(waits)


def _waited_s(tracer: GilAccount, workload: Workload) -> float:
    tids = [thread.tid for thread in observation_of(tracer, workload.pid).totals.threads]
    if _waiter(workload) not in tids:
        return 0.0
    return thread_of(observation_of(tracer, workload.pid), _waiter(workload)).wait_ns / _S


@pytest.mark.parametrize("interpreter", ONE_PER_MINOR)
def test_a_wait_counts_if_it_begins_in_a_window(
    interpreter: Interpreter, tracer: GilAccount, probe: GilProbe
) -> None:
    """
    Not one that was in flight when it began; one that outlasts it as a whole; then none again.
    """
    with _holding(interpreter) as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            window = _window_of(tracer, probe, workload.pid)
            _begin_hold(workload)
            workload.answer()
            _take_out(window)
            before_s = _waited_s(tracer, workload)

            _begin_hold(workload)
            window.place(0, _WARM_UP_NS, _LONG_NS)
            workload.answer()
            in_flight_s = _waited_s(tracer, workload) - before_s

            _begin_hold(workload)
            window.end()
            assert window.in_flight().counted_ns < time.monotonic_ns()
            workload.answer()
            _take_out(window)
            begun_s = _waited_s(tracer, workload) - before_s

            _begin_hold(workload)
            workload.answer()
            outside_s = _waited_s(tracer, workload) - before_s
        observation = observation_of(tracer, workload.pid)
        workload.finish()

    assert in_flight_s < 0.1 * _HOLD_S
    assert _HOLD_S * 0.9 < begun_s < _HOLD_S * 1.2
    assert begun_s == outside_s
    assert "" == observation.invalid
    assert {} == missed_events(observation)


def test_a_wait_that_was_not_followed_is_forgotten(tracer: GilAccount, probe: GilProbe) -> None:
    """
    The probes are taken out while it lasts: it is not taken for one that lasts until the next one.
    """
    python = ["/usr/bin/python3.11"]
    with started(python, "hold_in_c.py", "--threads", "1", "--seconds", str(_HOLD_S)) as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            window = _window_of(tracer, probe, workload.pid)
            before_s = _waited_s(tracer, workload)
            _begin_hold(workload)
            window.end()
            window.take_out()
            workload.answer()
            eventually(lambda: window.is_out)
            for _ in range(3):
                _begin_hold(workload)
                workload.answer()
            window.place(0, _WARM_UP_NS, _LONG_NS)
            eventually(lambda: time.monotonic_ns() > window.until_ns - _LONG_NS)
            _begin_hold(workload)
            workload.answer()
            after_s = _waited_s(tracer, workload) - before_s
        workload.finish()

    assert _HOLD_S * 0.9 < after_s < _HOLD_S * 1.2
