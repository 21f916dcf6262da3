"""What wakes the loop that looks after the traced processes, and what does not."""

import subprocess
import time
from typing import Self

import pytest

from accuracy.truth import started
from gilscope.gil.tracing.account import GilAccount
from support.tracing.trace import looked_after, observation_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3"
_LONG_S = 0.3
# Both threads are there from the beginning: in the end only the place of the waits is new.
_STEPS = """\
import sys, threading, time
def crunch():
    while True:
        sum(range(2000))
def known():
    time.sleep(0.001)
def new():
    time.sleep(0.001)
threading.Thread(target=crunch, daemon=True).start()
print(1, flush=True)
for line in sys.stdin:
    for _ in range(50):
        globals()[line.strip()]()
    print(2, flush=True)
"""


class _Steps:
    """A process that waits for the GIL in the function that it is told."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [_PYTHON, "-c", _STEPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid
        self._await_answer()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def take(self, function: str) -> None:
        """Return when *function* has been called often enough to wait in it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{function}\n")
        self._process.stdin.flush()
        self._await_answer()

    def _await_answer(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline()


def test_where_nothing_happens_the_wait_is_as_long_as_it_may_be(tracer: GilAccount) -> None:
    """
    A process that is traced and rests is no reason to end it.
    """
    with started([_PYTHON], "exact_count.py") as workload:
        tracer.attach(workload.pid)
        tracer.tick()
        tracer.tick()
        began_s = time.monotonic()
        tracer.wait(_LONG_S)
        took_s = time.monotonic() - began_s

    assert _LONG_S <= took_s


def test_new_stacks_are_read_while_nothing_else_happens(tracer: GilAccount) -> None:
    """
    Without any tick, so that the code which they stand for has no time to go.
    """
    with _Steps() as steps:
        tracer.attach(steps.pid)
        with looked_after(tracer):
            steps.take("known")
        steps.take("new")
        tracer.wait(_LONG_S)

        assert [] == list(tracer.probe.blame.new_stacks())
        edges = observation_of(tracer, steps.pid).totals.edges
    assert {"known", "new"} <= {
        frame.function for edge in edges for frame in edge.waiter.frames[:1]
    }
