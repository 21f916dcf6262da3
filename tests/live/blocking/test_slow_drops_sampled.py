"""A slow drop has its holder's stack read, also where no wait has."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import Limits, begin_loading
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import SlowDrop
from gilscope.runtimes.site_cache import SiteCache
from support.tracing.trace import looked_after

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3"
_TIMES = 25
_SLOW_MS = 25
"""From the request, which comes after a switch interval, to the release."""
# Holds the GIL in a call into C so often and so long, while another thread computes.
_SLOW = f"""\
import ctypes, sys, threading
on = True
def compute():
    while on:
        sum(range(2000))
def hold(library):
    library.usleep(hold_us)
interval_ms = int(sys.argv[1])
sys.setswitchinterval(interval_ms / 1000)
hold_us = 1000 * (interval_ms + {_SLOW_MS})
library = ctypes.PyDLL(None)
print(1, flush=True)
sys.stdin.readline()
thread = threading.Thread(target=compute)
thread.start()
for _ in range({_TIMES}):
    hold(library)
on = False
thread.join()
print(2, flush=True)
sys.stdin.readline()
"""


@contextmanager
def _tracer(folder: Path) -> Iterator[GilAccount]:
    with GilProbe(begin_loading(limits=Limits())) as probe:
        tracer = GilAccount(probe, SiteCache(folder))
        yield tracer
        tracer.close()


def _slow_drops(folder: Path, interval_ms: int) -> tuple[SlowDrop, ...]:
    """Return what is told of that program when the stacks of none of its waits are read."""
    command = [_PYTHON, "-c", _SLOW, str(interval_ms)]
    with (
        _tracer(folder) as tracer,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert "1\n" == process.stdout.readline()
        try:
            tracer.attach(process.pid)
            tracer.probe.read_stacks_of(process.pid, 0)
            with looked_after(tracer):
                process.stdin.write("begin\n")
                process.stdin.flush()
                assert "2\n" == process.stdout.readline()
            (seen,) = tracer.observe(is_final=True)
        finally:
            process.kill()
    return seen.totals.slow_drops


@pytest.mark.parametrize("interval_ms", [1, 5, 20])
def test_each_slow_drop_is_named(interval_ms: int, tmp_path: Path) -> None:
    """
    None is left to an unknown place, nor shared out, at whatever switch interval.
    """
    slow_drops = _slow_drops(tmp_path, interval_ms)
    holds = [one for one in slow_drops if "hold" in {each.function for each in one.holder.frames}]

    assert [] == [one for one in slow_drops if not one.holder.frames]
    # The first ones may be over before anybody waits, and a switch comes between two of them.
    assert _TIMES // 2 < sum(one.drop_latency.count for one in holds) <= _TIMES
    assert max(one.longest_ns for one in holds) < 10 * _SLOW_MS * 1_000_000
