"""What a process has used, and whether it can be ended."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from bench.footprint import (
    expects_signal,
    read_cpu_ns,
    read_family_cpu_ns,
    read_memory,
    read_switches,
    read_threads_cpu_ns,
)

_LATE_NS = 10_000_000
_ANSWERS = 200
_COMPUTES = """
import time
open("/proc/self/comm", "w").write("a child")
while time.process_time_ns() < 30_000_000:
    pass
print(flush=True)
input()
"""


def test_a_handler_is_seen() -> None:
    """
    Without one the signal would kill.
    """
    before = expects_signal(os.getpid(), signal.SIGUSR2)
    previous = signal.signal(signal.SIGUSR2, lambda *_: None)
    during = expects_signal(os.getpid(), signal.SIGUSR2)
    signal.signal(signal.SIGUSR2, previous)

    assert (False, True) == (before, during)


def test_a_blocked_signal_is_expected() -> None:
    """
    Whoever waits for a signal blocks it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    during = expects_signal(os.getpid(), signal.SIGUSR2)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})

    assert during


def test_cpu_time_is_that_of_the_process() -> None:
    """
    Between two readings of the process's own clock.
    """
    before_ns = time.process_time_ns()
    read_ns = read_cpu_ns(os.getpid())

    assert before_ns <= read_ns <= time.process_time_ns()


def test_cpu_time_of_threads_is_told_by_name() -> None:
    """
    Of those that run; the kernel brings it up to date a hundred times a second at the least.
    """
    told: list[int] = []

    def compute() -> None:
        Path("/proc/thread-self/comm").write_text("computes")
        while (now_ns := time.thread_time_ns()) < 3 * _LATE_NS:
            pass
        told.extend((now_ns - _LATE_NS, read_threads_cpu_ns(os.getpid())["computes"]))
        told.append(time.thread_time_ns())

    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()

    assert told == sorted(told)


def test_what_a_child_takes_counts_as_well() -> None:
    """
    As long as it has not ended; its threads are told with all others.
    """
    with subprocess.Popen(
        [sys.executable, "-c", _COMPUTES], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alone_ns, together_ns = read_cpu_ns(os.getpid()), read_family_cpu_ns(os.getpid())
        threads_ns = read_threads_cpu_ns(os.getpid())["a child"]
        child.kill()

    assert together_ns >= alone_ns + 30_000_000
    assert threads_ns >= 30_000_000


def test_whoever_sleeps_is_taken_off_the_cpu() -> None:
    """
    Each time that it waits for another one: no less often than the process itself knows of.
    """
    asked, answered, ended = (threading.Semaphore(0) for _ in range(3))

    def answer() -> None:
        for _ in range(_ANSWERS):
            asked.acquire()
            answered.release()
        ended.acquire()

    thread = threading.Thread(target=answer)
    thread.start()
    all_before, before, own_before = _own_switches(), read_switches(os.getpid()), _own_switches()
    for _ in range(_ANSWERS):
        asked.release()
        answered.acquire()
    own = _own_switches() - own_before
    switches = read_switches(os.getpid()) - before
    all_of_them = _own_switches() - all_before
    ended.release()
    thread.join()

    assert _ANSWERS <= own <= switches <= all_of_them


def _own_switches() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw


def test_memory_is_ordered() -> None:
    """
    Private pages are part of the proportional size, and that of the resident one.
    """
    memory = read_memory(os.getpid())

    assert 0 < memory.private_bytes <= memory.proportional_bytes <= memory.resident_bytes
