"""Five hundred threads that all want the GIL."""

import subprocess
from pathlib import Path

import pytest

from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually
from support.tracing.observations import waits_of
from support.tracing.trace import looked_after, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_THREADS = 500
# Who starts a thread waits for the GIL until that runs: beside others that compute it takes minutes
# to come to the last of 500. So each has a lock, and all are let go in one switch interval.
_PROGRAM = f"""\
import sys, threading
def compute(lock):
    lock.acquire()
    while True:
        sum(range(1000))
locks = [threading.Lock() for _ in range({_THREADS})]
for lock in locks:
    lock.acquire()
    threading.Thread(target=compute, args=(lock,), daemon=True).start()
sys.setswitchinterval(10)
for lock in locks:
    lock.release()
sys.setswitchinterval(0.005)
print(1, flush=True)
sys.stdin.readline()
"""


def test_all_but_one_of_five_hundred_threads_wait(probe: GilProbe, tmp_path: Path) -> None:
    """
    One holds the GIL at any time, so that 499 seconds are lost in a second, or 500 in a switch.
    """
    tracer = GilAccount(probe, SiteCache(tmp_path))
    with subprocess.Popen(
        ["/usr/bin/python3.11", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        tracer.attach(process.pid)
        with looked_after(tracer):
            # Each is known from its first time-out on, 5 ms later or when it gets a CPU for it.
            eventually(lambda: len(observation_of(tracer, process.pid).totals.threads) >= _THREADS)
            first = observation_of(tracer, process.pid)
            eventually(lambda: waits_of(observation_of(tracer, process.pid)) > waits_of(first) + 50)
            last = observation_of(tracer, process.pid)
        process.kill()
        tracer.close()
    tracer.drop(process.pid)
    passed_ns = last.totals.at_ns - first.totals.at_ns
    lost_ns = [sum(each.wait_ns for each in seen.totals.threads) for seen in (first, last)]

    assert "" == last.invalid
    assert _THREADS - 1 == pytest.approx((lost_ns[1] - lost_ns[0]) / passed_ns, abs=2)
