"""What ends the wait of the loop that looks after the traced processes."""

import os
import subprocess
import time
from collections.abc import Iterator
from typing import Any, Self, cast

import pytest

from gilscope.gil.tracing.wakeups import Wakeups
from gilscope.process.watch import ProcessWatch

_LONG_S = 60.0
_PID = 4711


class _Pipe:
    """In place of a ring: readable once something is in it."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def fileno(self) -> int:
        return self._reader

    def fill(self) -> None:
        os.write(self._writer, b"1")

    def empty(self) -> None:
        os.read(self._reader, 1)

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


class _Rings:
    """The two rings of a probe."""

    def __init__(self) -> None:
        self.notice_ring = _Pipe()
        self.stack_ring = _Pipe()
        self.read_at_s: list[float] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.notice_ring.close()
        self.stack_ring.close()

    def read_stack(self) -> None:
        """Note when, and leave the rest in the ring."""
        self.stack_ring.empty()
        self.read_at_s.append(time.monotonic())

    def last_s(self) -> float:
        return self.read_at_s[-1] if self.read_at_s else 0.0


@pytest.fixture
def rings() -> Iterator[_Rings]:
    """Nothing has been noticed yet."""
    with _Rings() as made:
        yield made


@pytest.fixture
def watch() -> Iterator[ProcessWatch]:
    """No process is watched yet."""
    with ProcessWatch() as made:
        yield made


@pytest.fixture
def wakeups(rings: _Rings, watch: ProcessWatch) -> Wakeups:
    """Waits for the rings, and for ends."""
    return Wakeups(cast("Any", rings), watch)


def _wait(wakeups: Wakeups, rings: _Rings, seconds: float) -> float:
    """Return how long it took, in seconds."""
    began_s = time.monotonic()
    wakeups.wait(began_s + seconds, rings.read_stack, rings.last_s)
    return time.monotonic() - began_s


def test_without_anything_it_is_as_long_as_it_may_be(wakeups: Wakeups, rings: _Rings) -> None:
    """
    And not longer than that by much, which the next line of the loop would notice.
    """
    assert 0.02 <= _wait(wakeups, rings, 0.02) < _LONG_S
    assert [] == rings.read_at_s


def test_a_notice_ends_it(wakeups: Wakeups, rings: _Rings) -> None:
    """
    At once, and as long as nobody has taken it.
    """
    rings.notice_ring.fill()

    assert _wait(wakeups, rings, _LONG_S) < _LONG_S / 2
    assert _wait(wakeups, rings, _LONG_S) < _LONG_S / 2
    assert [] == rings.read_at_s


def test_who_wakes_it_ends_it(wakeups: Wakeups, rings: _Rings, watch: ProcessWatch) -> None:
    """
    At once, and until somebody has looked after the processes, none of which has ended.
    """
    watch.wake()
    watch.wake()

    assert _wait(wakeups, rings, _LONG_S) < _LONG_S / 2
    assert _wait(wakeups, rings, _LONG_S) < _LONG_S / 2
    assert set() == watch.ended()
    assert 0.02 <= _wait(wakeups, rings, 0.02)


def test_stacks_are_read_and_do_not_end_it(wakeups: Wakeups, rings: _Rings) -> None:
    """
    Where there are always more of them they are read now and then.
    """
    for _ in range(3):
        rings.stack_ring.fill()
    took_s = _wait(wakeups, rings, 0.5)

    assert 0.5 <= took_s
    assert 3 == len(rings.read_at_s)
    first, second, third = rings.read_at_s
    assert second - first >= 0.05
    assert third - second >= 0.05


def test_the_end_of_a_process_ends_it(wakeups: Wakeups, rings: _Rings, watch: ProcessWatch) -> None:
    """
    Until that process is removed; one that lives is no reason.
    """
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        pidfd = os.pidfd_open(process.pid)
        watch.add(pidfd, _PID)
        alive_s = _wait(wakeups, rings, 0.02)
        ended_before = watch.ended()
        process.communicate()
    dead_s = _wait(wakeups, rings, _LONG_S)
    ended_after = watch.ended()
    watch.remove(pidfd)
    removed_s = _wait(wakeups, rings, 0.02)
    os.close(pidfd)

    assert alive_s >= 0.02
    assert set() == ended_before
    assert dead_s < _LONG_S / 2
    assert {_PID} == ended_after
    assert removed_s >= 0.02
    assert set() == watch.ended()
