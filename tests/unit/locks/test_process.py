"""What is shown of one process whose locks are traced."""

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from gilscope.locks.process import AttachedLocks
from gilscope.locks.target import LockTarget
from gilscope.locks.totals import RawLocks
from gilscope.process.memory import ProcessMemory
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.windows.window import ProbeWindow
from support.recordings.locks import MS, STACKS, lock_recording, thread

_NOW_NS = 1_000 * MS


@dataclass
class _Window:
    """One that has been open since 5 ns."""

    is_whole: bool
    is_open: bool = True

    def observed_ns(self, at_ns: int) -> int:
        return at_ns - 5


def _attached(window: _Window) -> AttachedLocks:
    target = SimpleNamespace(process=lock_recording().observation.process)
    return AttachedLocks(
        pid=4711,
        pidfd=-1,
        memory=cast("ProcessMemory", None),
        since_ns=5,
        target=cast("LockTarget", target),
        window=cast("ProbeWindow", window),
        code=cast("CodeReader", None),
        stacks=dict(STACKS),
    )


@pytest.mark.parametrize("is_whole", [True, False])
def test_what_is_in_flight_counts_where_it_cannot_be_taken_back(*, is_whole: bool) -> None:
    """
    A window ends without the waits that outlast it, and counters never run back.
    """
    asleep = thread(wanted_ns=_NOW_NS - 10 * MS, asleep_ns=_NOW_NS - 6 * MS)
    seen = _attached(_Window(is_whole)).observation(RawLocks(_NOW_NS, {11: asleep}), None)

    assert seen.totals is not None
    assert (10 * MS if is_whole else 0) == seen.totals.contended_ns


def test_what_cannot_be_read_has_no_figures() -> None:
    """
    Their reason is told; the process is traced on.
    """
    seen = _attached(_Window(is_whole=True)).unread()

    assert "what its probes have counted cannot be read" == seen.invalid
    assert seen.totals is not None
    assert () == seen.totals.threads
    assert seen.totals.at_ns <= time.monotonic_ns()
