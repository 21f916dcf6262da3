"""A thread that waits is found in its interpreter's list, wherever it stands there."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from gilscope.model.kinds import Kind
from support.tracing.trace import looked_after, observation_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3.11"
_SLEEPS = 20
# The main thread is the oldest, so the last one of the list of the oldest interpreter, which is the
# last one too. It sleeps again and again, and then waits behind a thread that computes.
_PROGRAM = f"""\
import sys, threading, time
import _xxsubinterpreters
threads, interpreters = map(int, sys.argv[1:])
on = False
begin = threading.Semaphore(0)
end = threading.Semaphore(0)
def crunch():
    while begin.acquire():
        while on:
            sum(range(2000))
        end.release()
def wait_here():
    for _ in range({_SLEEPS}):
        time.sleep(0.0005)
gate = threading.Lock()
gate.acquire()
for _ in range(threads):
    threading.Thread(target=gate.acquire, daemon=True).start()
kept = [_xxsubinterpreters.create() for _ in range(interpreters)]
threading.Thread(target=crunch, daemon=True).start()
print(1, flush=True)
for line in sys.stdin:
    on = True
    begin.release()
    wait_here()
    on = False
    end.acquire()
    print(2, flush=True)
"""


class _Waiter:
    """A process whose main thread waits some times whenever it is told to."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.pid = process.pid
        self._process = process

    def wait(self) -> None:
        """Let it wait; returns when it has done so."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        assert "2\n" == self._process.stdout.readline()


@contextmanager
def _waiter(threads: int, interpreters: int) -> Iterator[_Waiter]:
    with subprocess.Popen(
        [_PYTHON, "-c", _PROGRAM, str(threads), str(interpreters)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield _Waiter(process)
        finally:
            process.kill()


def _stretches(seen: GilObservation, *, found: bool) -> int:
    """Return how many parts of waits after a sleep began in the function, or where nobody knows.

    A wait has a part for each holder that it was seen to wait for.
    """
    return sum(
        edge.lost.count
        for edge in seen.totals.edges
        if edge.kind in (Kind.BLOCKING_CALL, Kind.CONVOY)
        and found == ("wait_here" in [frame.function for frame in edge.waiter.frames])
        and (found or not edge.waiter.frames)
    )


@pytest.mark.parametrize(
    ("threads", "interpreters"),
    [
        (0, 0),
        # Around the end of the first run of the program, which looks at 32 places: a place each for
        # the head of a list, for the thread that computes and for the main one.
        (29, 0),
        (30, 0),
        (31, 0),
        # The first run ends between two interpreters, each of which has a head and a thread.
        (0, 16),
        (0, 17),
        # The fourth run, which is the last one for one wait.
        (125, 0),
    ],
)
def test_waiter_is_found_at_once(threads: int, interpreters: int, tracer: GilAccount) -> None:
    """
    All waits of the last thread of the list are known, from the first one on.
    """
    with _waiter(threads, interpreters) as waiter:
        tracer.attach(waiter.pid)
        with looked_after(tracer):
            waiter.wait()
        seen = observation_of(tracer, waiter.pid)

    assert 0 < _stretches(seen, found=True)
    assert 0 == _stretches(seen, found=False)


def test_waiter_far_down_the_list_is_found_with_a_later_wait(tracer: GilAccount) -> None:
    """
    A search of 400 threads goes on from wait to wait, and what it has found is known from then on.
    """
    with _waiter(400, 0) as waiter:
        tracer.attach(waiter.pid)
        with looked_after(tracer):
            waiter.wait()
            first = observation_of(tracer, waiter.pid)
            waiter.wait()
        second = observation_of(tracer, waiter.pid)

    assert 0 < _stretches(first, found=False)
    assert _stretches(first, found=False) == _stretches(second, found=False)
    assert _stretches(first, found=True) < _stretches(second, found=True)
