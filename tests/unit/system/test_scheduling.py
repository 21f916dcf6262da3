"""How a thread is scheduled after it has asked to be woken promptly."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

from gilscope.system.scheduling import wake_promptly

_T = TypeVar("_T")


def _in_a_thread(look: Callable[[], _T]) -> _T:
    """Return what *look* returns in a thread of its own, which has it all to itself."""
    results: list[_T] = []
    thread = threading.Thread(target=lambda: results.append(look()))
    thread.start()
    thread.join()
    (result,) = results
    return result


def _slice_ns() -> int:
    """Return the time slice of the calling thread; skips where the kernel does not show it."""
    file = Path(f"/proc/self/task/{threading.get_native_id()}/sched")
    if not file.exists():
        pytest.skip("this kernel does not show how it schedules (CONFIG_SCHED_DEBUG)")
    for line in file.read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "se.slice":
            return int(value)
    return 0


def _refuse(*_: object) -> NoReturn:
    raise PermissionError


def test_real_time_stays_in_the_thread() -> None:
    """
    The thread that asks gets it, where that is permitted, not one that it starts, nor the others.
    """
    ordinary = os.sched_getscheduler(0)

    def look() -> tuple[bool, int, int]:
        promptly = wake_promptly()
        return promptly, os.sched_getscheduler(0), _in_a_thread(lambda: os.sched_getscheduler(0))

    promptly, own, started = _in_a_thread(look)

    if own == ordinary:
        pytest.skip("real-time priority is not permitted here")
    assert promptly
    assert os.SCHED_FIFO | os.SCHED_RESET_ON_FORK == own
    assert ordinary == started == os.sched_getscheduler(0)


def test_short_slice_where_real_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The slice is a tenth of a millisecond if the kernel can do that, and it is said whether it can.
    """
    monkeypatch.setattr(os, "sched_setscheduler", _refuse)
    before_ns = _slice_ns()
    promptly, slice_ns, policy = _in_a_thread(
        lambda: (wake_promptly(), _slice_ns(), os.sched_getscheduler(0))
    )

    assert promptly == (slice_ns == 100_000)
    assert os.SCHED_OTHER == policy
    assert before_ns == _slice_ns()


def test_kernel_that_knows_no_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One that takes the wish and forgets it, as before Linux 6.12, is not believed.
    """
    monkeypatch.setattr(os, "sched_setscheduler", _refuse)

    # It says yes to everything and does nothing.
    monkeypatch.setattr("gilscope.system.scheduling.attempt", lambda *_: 0)

    assert not wake_promptly()
