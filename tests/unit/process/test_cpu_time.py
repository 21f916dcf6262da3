"""The CPU time of another process, against what it says of itself."""

import os
import subprocess
import sys
import time

from gilscope.process.cpu_time import process_cpu_ns

_COMPUTE = """\
import sys, threading, time
def compute():
    while time.process_time_ns() < 30_000_000:
        pass
for _ in range(2):
    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()
print(time.process_time_ns(), flush=True)
sys.stdin.readline()
"""


def test_own_time_is_the_clocks() -> None:
    """
    Asked about itself, a process gets what its own clock says.
    """
    before_ns = time.process_time_ns()
    seen_ns = process_cpu_ns(os.getpid())

    assert seen_ns is not None
    assert before_ns <= seen_ns <= time.process_time_ns()


def test_threads_that_have_ended_are_included() -> None:
    """
    What the threads of another process have used stays, and a waiting process uses nothing more.
    """
    command = [sys.executable, "-c", _COMPUTE]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        told_ns = int(process.stdout.readline())
        seen_ns = process_cpu_ns(process.pid)
        process.kill()

    assert seen_ns is not None
    assert 30_000_000 <= told_ns <= seen_ns


def test_a_process_that_has_gone_has_no_time() -> None:
    """
    Neither zero nor somebody else's.
    """
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()

    assert process_cpu_ns(process.pid) is None
